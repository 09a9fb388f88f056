#!/usr/bin/env bash
# fetch-model.sh OWNER/NAME [FOLDER]: fetches the files of a public model that Cloze reads from a model hub into FOLDER
# (default: models/NAME), with curl. CLOZE_HUB is the address of the hub, CLOZE_REVISION a branch or commit (default:
# main). The size and the hash of each file are those that the hub tells: SHA-256 of large files, the git hash of others.
# An interrupted download continues when the command is repeated; files that are there and right are kept.
set -euo pipefail

fail() { echo "fetch-model: $*" >&2; exit 1; }
usage='usage: CLOZE_HUB=https://ADDRESS tools/fetch-model.sh OWNER/NAME [FOLDER]'
[ $# -ge 1 ] && [ $# -le 2 ] || { echo "$usage" >&2; exit 2; }
[ -n "${CLOZE_HUB:-}" ] || { echo "fetch-model: CLOZE_HUB: expected the address of the model hub
$usage" >&2; exit 2; }
command -v curl > /dev/null || fail 'curl: not found: expected it to be installed'
name=$1 folder=${2:-models/${1##*/}} hub=${CLOZE_HUB%/} revision=${CLOZE_REVISION:-main}
[[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)?$ ]] || fail "$name: expected OWNER/NAME"

# What Cloze reads; weights only as safetensors.
wanted='^(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|modules|'
wanted+='sentence_bert_config|config_sentence_transformers|adapter_config|model\.safetensors\.index|'
wanted+='[0-9]_[A-Za-z]+/config)\.json$|^(vocab|merges)\.txt$|^(spm|spiece|sentencepiece\.bpe)\.model$|'
wanted+='^(model|model-[0-9]+-of-[0-9]+|adapter_model)\.safetensors$|^(LICENSE|README\.md)$'

get() { curl --fail --silent --show-error --location --retry 3 "$@"; }
value() { sed -nE "s/.*\"$1\" *: *\"?([^\",}]*).*/\1/p" <<< "$2"; }

tree=$(get "$hub/api/models/$name/tree/$revision?recursive=true") ||
  fail "$name: the hub does not list its files (is the name right? does the model need a login?)"

# True if the file $1 has the size $2 and the hash $3.
right() {
  [ -f "$1" ] && [ "$(stat -c %s "$1")" = "$2" ] || return 1
  if [ ${#3} = 64 ]; then
    [ "$(sha256sum < "$1" | cut -d' ' -f1)" = "$3" ]
  else
    [ "$({ printf 'blob %d\0' "$2"; cat "$1"; } | sha1sum | cut -d' ' -f1)" = "$3" ]
  fi
}

# Fetches the file $1, of which the list tells the size $2 and the git hash $3.
fetch() {
  local path=$1 size=$2 hash=$3 url="$hub/$name/resolve/$revision/$1" file="$folder/$1" head linked
  # A large file's headers come before the redirection to where it is stored.
  head=$(curl --fail --silent --show-error --head --retry 3 "$url" | tr -d '\r') || fail "$path: the hub does not give it"
  linked=$(sed -nE 's/^x-linked-etag: *"?([0-9a-f]{64})"?$/\1/Ip' <<< "$head")
  [ -z "$linked" ] || { hash=$linked; size=$(sed -nE 's/^x-linked-size: *([0-9]+)$/\1/Ip' <<< "$head"); }
  if right "$file" "$size" "$hash"; then echo "$path: is there" >&2; return; fi
  mkdir -p "$(dirname "$file")"
  [ ! -f "$file.part" ] || [ "$(stat -c %s "$file.part")" -lt "$size" ] || rm "$file.part"
  echo "$path: $size bytes" >&2
  get --continue-at - --output "$file.part" "$url" || fail "$path: interrupted (repeat the command to go on)"
  right "$file.part" "$size" "$hash" || { rm "$file.part"; fail "$path: its size or hash is not what the hub tells"; }
  mv "$file.part" "$file"
}

count=0 weights=
while IFS= read -r entry; do
  path=$(value path "$entry") plain=$(sed -E 's/"lfs" *: *\{[^}]*\}//' <<< "$entry")
  [[ $path =~ $wanted ]] || continue
  [[ $path != *.safetensors ]] || weights=1
  fetch "$path" "$(value size "$plain")" "$(value oid "$plain")"
  count=$((count + 1))
done < <(tr -d '\n' <<< "$tree" | sed -E 's/\{ *"type"/\n&/g' | grep '"file"' || true)
[ -n "$weights" ] || fail "$name: has no weights as safetensors (perhaps another revision has: CLOZE_REVISION=refs/pr/N)"
echo "$folder: $count files"
