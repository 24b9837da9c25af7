#!/usr/bin/env bash
# Builds gamelake_native and puts it where a Python finds it: `build.sh PYTHON`. Without a Rust that is new enough it prints
# so and exits with 0: the library then reads Kafka by the package confluent-kafka, with more CPU time.
set -euo pipefail
python="$1"
here="$(cd "$(dirname "$0")" && pwd)"
wanted="$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$here/Cargo.toml")"
found="$(cargo --version 2>/dev/null | awk '{ print $2 }')" || true
if [ -z "$found" ] || [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
  echo "No Rust $wanted or newer (found: ${found:-none}): tasks read Kafka by confluent-kafka, with more CPU time"
  exit
fi
site="$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')"
CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/../build/native}"
export CARGO_TARGET_DIR
cargo build --quiet --release --locked --manifest-path "$here/Cargo.toml"
for library in "$CARGO_TARGET_DIR"/release/libgamelake_native.{so,dylib}; do
  [ ! -f "$library" ] || install -m 644 "$library" "$site/gamelake_native.abi3.so"
done
