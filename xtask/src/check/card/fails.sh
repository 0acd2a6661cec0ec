#!/bin/sh
# Runs a command that must fail, with a message, and not by a signal: `sh fails.sh COMMAND…`.
"$@"
code=$?
if [ "$code" -eq 0 ]; then
    echo "it did not fail"
    exit 1
fi
if [ "$code" -ge 128 ]; then
    echo "it ended by a signal: $code"
    exit 1
fi
exit 0
