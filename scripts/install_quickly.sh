#!/usr/bin/env bash
# install_quickly.sh PYTHON LIST: installs the packages of a list with uv, in a fraction of pip's time, from
# where pip would take them. What it cannot do is no failure: pip comes after it, does the rest and says what is
# wrong.
set -uo pipefail

python=$1 list=$2
pip=("$python" -m pip --disable-pip-version-check)
listed=(--require-hashes --only-binary :all: -r)
"${pip[@]}" install --no-compile "${listed[@]}" requirements/uv.txt >/dev/null 2>&1 || exit 0
settings=$("${pip[@]}" config list 2>/dev/null)

# A setting of pip, from a file or from the environment, which comes first there as here; its values in a row.
setting() {
  sed -n "s/^\(global\|install\|:env:\)\.$1='\(.*\)'$/\1 \2/p" <<<"$settings" | sort | head -1 |
    cut -d ' ' -f 2- | sed 's/\\n/ /g'
}

index=$(setting index-url) more=$(setting extra-index-url) links=$(setting find-links) cert=$(setting cert)
export UV_CACHE_DIR=.venv/.uv UV_INDEX_STRATEGY=unsafe-best-match  # the best of all, as pip does
[[ -z $index ]] || export UV_DEFAULT_INDEX=$index
[[ -z $more ]] || export UV_EXTRA_INDEX_URL=$more
[[ -z $links ]] || export UV_FIND_LINKS=${links// /,}
[[ -z $cert ]] || export SSL_CERT_FILE=$cert
quickly=("$python" -m uv pip install --quiet --no-deps --python "$python" --require-hashes --only-binary :all:)

# There is a build of torch for this machine on some, which is smaller and is what pip takes where it need not
# know its hash. So it is fetched without, and then its hash must be on the list.
if torch=$(grep '^torch==' "$list"); then
  place=$PWD/$UV_CACHE_DIR/torch
  "${pip[@]}" download --quiet --no-deps --only-binary :all: --dest "$place" "${torch%% *}" >/dev/null 2>&1
  for wheel in "$place"/*.whl; do
    hash=$(sha256sum "$wheel" | cut -d ' ' -f 1)
    [[ $torch != *sha256:$hash* ]] ||
      "${quickly[@]}" -r <(echo "torch @ file://${wheel/+/%2B} --hash=sha256:$hash") >/dev/null 2>&1
  done
fi
"${quickly[@]}" -r <(grep -v '^torch==' "$list") >/dev/null 2>&1
rm -rf "$UV_CACHE_DIR"
