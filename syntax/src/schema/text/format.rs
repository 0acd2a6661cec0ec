//! The formats: named sets of strings, as expressions that match the whole string.
//!
//! Each follows the grammar of its RFC. Dates exist (leap years included). A second of 60 is allowed where
//! the time is 23:59 in UTC, for offsets of whole and half hours. `regex` and the host names are not regular
//! sets; for them the language here is smaller than the format, and a note says so. Where such a format is
//! denied, a larger language is denied. Host names in Punycode have no expression at all, and are added where
//! the format is the only constraint on a string (`punycode`).

use std::sync::OnceLock;

use lexiform_automata::grammar::Part;

use super::hir::own_expression;
use super::hostname::{self, LABEL};
use super::spelled::{SpelledParts, spelled};
use super::{idna, pattern};

type Build = fn() -> Vec<Part>;

/// A format, with a cell for its expression once it is built.
struct Format {
    name: &'static str,
    build: Build,
    /// The part of the format that is left out, if any.
    narrower: Option<Narrower>,
    parts: OnceLock<SpelledParts>,
}

/// A format of which only a part is known.
struct Narrower {
    note: &'static str,
    /// A language that contains all words of the format: its complement is taken where the format is denied.
    wider: Build,
    parts: OnceLock<SpelledParts>,
}

const fn format(name: &'static str, build: Build) -> Format {
    Format {
        name,
        build,
        narrower: None,
        parts: OnceLock::new(),
    }
}

const fn narrower(name: &'static str, build: Build, wider: Build, note: &'static str) -> Format {
    Format {
        name,
        build,
        narrower: Some(Narrower {
            note,
            wider,
            parts: OnceLock::new(),
        }),
        parts: OnceLock::new(),
    }
}

/// The set of valid labels is not regular. The validator that decides them applies only to the whole format.
macro_rules! some_punycode {
    () => {
        "names with Punycode labels (`xn--`) are rejected as object keys, as unique items, and where a keyword other than `enum` or \
        `const` constrains the string too; elsewhere, a name may have one such label with at most 95 characters before and after it, \
        or one or two of them with at most 42 characters before, between and after, where no label begins with a digit and one may \
        run from right to left; most Punycode labels longer than 55 characters or with upper-case letters are rejected"
    };
}

const SOME_PUNYCODE: &str = some_punycode!();
const SOME_NAMES: &str = concat!(
    some_punycode!(),
    "; also rejected are Punycode labels next to labels that are not ASCII, names longer than 59 characters of which one is not ASCII, \
    right-to-left scripts other than Arabic, Hebrew, N'Ko, Syriac and Thaana outside of Punycode, and such a script next to \
    labels in another script than ASCII; not checked is whether a label outside of Punycode is in Normalization Form C or too \
    long in Punycode"
);
const FLAT_EXPRESSIONS: &str = "groups nest at most 3 deep, at most one has a name, there are no backreferences, and character ranges \
    are ranges of letters or of digits; the rest is not regular";

static FORMATS: [Format; 22] = [
    format("date-time", || one(format!("{}[Tt]{}", date(), time()))),
    format("date", || one(date())),
    format("time", || one(time())),
    format("duration", || one(DURATION)),
    format("email", || one(email(ATOM, LABEL))),
    format("idn-email", || one(email(IDN_ATOM, IDN_LABEL))),
    narrower("hostname", hostname::parts, hostname::wider, SOME_PUNYCODE),
    narrower("host-name", hostname::parts, hostname::wider, SOME_PUNYCODE),
    narrower("idn-hostname", idna::parts, idna::wider, SOME_NAMES),
    narrower("regex", pattern::parts, pattern::wider, FLAT_EXPRESSIONS),
    format("ipv4", || one(ipv4())),
    format("ip-address", || one(ipv4())),
    format("ipv6", || one(ipv6())),
    format("uri", || one(Uri::ascii().absolute())),
    format("uri-reference", || one(Uri::ascii().reference())),
    format("iri", || one(Uri::unicode().absolute())),
    format("iri-reference", || one(Uri::unicode().reference())),
    format("uri-template", || one(uri_template())),
    format("uuid", || {
        one("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
    }),
    format("json-pointer", || one(POINTER)),
    format("relative-json-pointer", || {
        one(format!("(?:0|[1-9][0-9]*)(?:#|{POINTER})"))
    }),
    format("uri-fragment-json-pointer", || one(FRAGMENT_POINTER)),
];

/// Returns the language of a format, and its static name.
pub(super) fn named(name: &str) -> Option<(&'static str, &'static SpelledParts)> {
    let format = FORMATS.iter().find(|format| format.name == name)?;
    Some((
        format.name,
        format.parts.get_or_init(|| spelled((format.build)())),
    ))
}

/// Returns the names of all formats.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.name)
}

/// Returns a note on the part of a format that is left out, if any.
pub(crate) fn narrowed(name: &str) -> Option<&'static str> {
    Some(narrower_part(name)?.note)
}

/// Returns a language that contains all words of a format of which only a part is known.
pub(super) fn wider(name: &str) -> Option<&'static SpelledParts> {
    let narrower = narrower_part(name)?;
    Some(narrower.parts.get_or_init(|| spelled((narrower.wider)())))
}

fn narrower_part(name: &str) -> Option<&'static Narrower> {
    let format = FORMATS.iter().find(|format| format.name == name)?;
    format.narrower.as_ref()
}

/// Returns further words of a format, which are counted in another way.
pub(super) fn further(name: &str) -> Option<&'static SpelledParts> {
    static LONG_NAMES: OnceLock<SpelledParts> = OnceLock::new();
    (name == "idn-hostname").then(|| LONG_NAMES.get_or_init(|| spelled(idna::long())))
}

/// Returns `true` if a format includes names in Punycode, which no expression can decide; see
/// [`punycode`](super::punycode).
pub(super) fn has_punycode(name: &str) -> bool {
    ["hostname", "host-name", "idn-hostname"].contains(&name)
}

fn one(expression: impl AsRef<str>) -> Vec<Part> {
    vec![Part::Match(own_expression(expression.as_ref()))]
}

fn date() -> String {
    let year = "[0-9]{4}";
    let leap = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
    format!(
        "(?:{year}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
         |02-(?:0[1-9]|1[0-9]|2[0-8]))|{leap}-02-29)"
    )
}

fn time() -> String {
    let fraction = r"(?:\.[0-9]+)?";
    let offset = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
    let usual = format!("(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]{fraction}{offset}");
    // The local time of a leap second is 23:59 UTC moved by the offset, so each local time has its own
    // offsets.
    let mut leaps = vec![format!("23:59:60{fraction}(?:[Zz]|[+-]00:00)")];
    for offset in (30..24 * 60).step_by(30) {
        let (hours, minutes) = (offset / 60, offset % 60);
        for (sign, utc_to_local) in [("\\+", offset), ("-", 24 * 60 - offset)] {
            let local = (23 * 60 + 59 + utc_to_local) % (24 * 60);
            let (hour, minute) = (local / 60, local % 60);
            leaps.push(format!(
                "{hour:02}:{minute:02}:60{fraction}{sign}{hours:02}:{minutes:02}"
            ));
        }
    }
    format!("(?:{usual}|{})", leaps.join("|"))
}

const DURATION: &str = "P(?:(?:(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)\
    (?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?)\
    |T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)|[0-9]+W)";

const ATOM: &str = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]";
const IDN_ATOM: &str = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\-\u{80}-\u{10FFFF}]";
const IDN_LABEL: &str =
    "[A-Za-z0-9\u{80}-\u{10FFFF}](?:[A-Za-z0-9\\-\u{80}-\u{10FFFF}]{0,61}[A-Za-z0-9\u{80}-\u{10FFFF}])?";
const POINTER: &str = "(?:/(?:[^/~]|~[01])*)*";
const FRAGMENT_POINTER: &str = "#(?:/(?:[A-Za-z0-9._!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2}|~[01])*)*";

fn email(atom: &str, label: &str) -> String {
    let beyond = if atom == ATOM { "" } else { "\u{80}-\u{10FFFF}" };
    let quoted = format!(r#""(?:[ !#-\[\]-~{beyond}]|\\[ -~{beyond}])*""#);
    let (ipv4, ipv6) = (ipv4(), ipv6());
    format!(r"(?:{atom}+(?:\.{atom}+)*|{quoted})@(?:{label}(?:\.{label})*|\[(?:{ipv4}|IPv6:{ipv6})\])")
}

fn ipv4() -> String {
    let octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
    format!(r"{octet}(?:\.{octet}){{3}}")
}

fn ipv6() -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let last = format!("(?:{group}:{group}|{})", ipv4());
    let mut forms = vec![format!("(?:{group}:){{6}}{last}")];
    // `::` replaces one or more groups; the forms differ in how many groups may come before it.
    for after in (0..=5usize).rev() {
        let before = optional_groups(group, 5 - after);
        let middle = if after == 0 {
            String::new()
        } else {
            format!("(?:{group}:){{{after}}}")
        };
        forms.push(format!("{before}::{middle}{last}"));
    }
    forms.push(format!("{}::{group}", optional_groups(group, 5)));
    forms.push(format!("{}::", optional_groups(group, 6)));
    format!("(?:{})", forms.join("|"))
}

/// Returns an expression for nothing, or for up to `more + 1` groups with colons between them.
fn optional_groups(group: &str, more: usize) -> String {
    if more == 0 {
        format!("(?:{group})?")
    } else {
        format!("(?:(?:{group}:){{0,{more}}}{group})?")
    }
}

/// The character sets of RFC 3986, and of RFC 3987 with more characters.
struct Uri {
    unreserved: &'static str,
    private: &'static str,
}

impl Uri {
    fn ascii() -> Uri {
        Uri {
            unreserved: r"A-Za-z0-9._~\-",
            private: "",
        }
    }

    fn unicode() -> Uri {
        let unreserved = "A-Za-z0-9._~\\-\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{1FFFD}\
            \u{20000}-\u{2FFFD}\u{30000}-\u{3FFFD}\u{40000}-\u{4FFFD}\u{50000}-\u{5FFFD}\u{60000}-\u{6FFFD}\
            \u{70000}-\u{7FFFD}\u{80000}-\u{8FFFD}\u{90000}-\u{9FFFD}\u{A0000}-\u{AFFFD}\u{B0000}-\u{BFFFD}\
            \u{C0000}-\u{CFFFD}\u{D0000}-\u{DFFFD}\u{E1000}-\u{EFFFD}";
        Uri {
            unreserved,
            private: "\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}",
        }
    }

    fn chars(&self, more: &str) -> String {
        format!("(?:[{}!$&'()*+,;={more}]|%[0-9A-Fa-f]{{2}})", self.unreserved)
    }

    fn authority(&self) -> String {
        let (user, name) = (self.chars(":"), self.chars(""));
        let future = r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:\-]+";
        format!(
            r"(?:{user}*@)?(?:\[(?:{}|{future})\]|{name}*)(?::[0-9]*)?",
            ipv6()
        )
    }

    fn tail(&self) -> String {
        let query = self.chars(&format!(":@/?{}", self.private));
        let fragment = self.chars(":@/?");
        format!(r"(?:\?{query}*)?(?:#{fragment}*)?")
    }

    fn absolute(&self) -> String {
        let (authority, char, tail) = (self.authority(), self.chars(":@"), self.tail());
        let path = format!("(?://{authority}(?:/{char}*)*|/(?:{char}+(?:/{char}*)*)?|{char}+(?:/{char}*)*|)");
        format!(r"[A-Za-z][A-Za-z0-9+.\-]*:{path}{tail}")
    }

    fn reference(&self) -> String {
        let (authority, char, tail) = (self.authority(), self.chars(":@"), self.tail());
        // The first segment of a relative path has no colon, because it would be read as a scheme.
        let first = self.chars("@");
        let path =
            format!("(?://{authority}(?:/{char}*)*|/(?:{char}+(?:/{char}*)*)?|{first}+(?:/{char}*)*|)");
        format!("(?:{}|{path}{tail})", self.absolute())
    }
}

/// RFC 6570.
fn uri_template() -> String {
    let literal = "(?:[!#$&'(-;=?-\\[\\]_a-z~\u{A0}-\u{D7FF}\u{E000}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{10FFFD}]\
        |%[0-9A-Fa-f]{2})";
    let name_char = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})";
    let variable = format!(r"{name_char}(?:\.?{name_char})*(?::[1-9][0-9]{{0,3}}|\*)?");
    format!(r"(?:{literal}|\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}})*")
}
