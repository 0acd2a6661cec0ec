// The native part of the package, built from `src/`.

import { createRequire } from "node:module";

const native = createRequire(import.meta.url)("../lexiform.node");

export default native;
