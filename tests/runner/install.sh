# Tools and packages of the checks; `tests/run` reads this file. Debian's packages by apt (as root, or through
# sudo), node's by their lock file, crates by cargo. What is there already is not installed.

install_tools() {
  local packages=() name
  has cargo || fail "Rust is missing: see rust-lang.org"
  has cc || fail "a C compiler is missing: apt-get install build-essential"
  for name in rustfmt clippy; do
    cargo "${name#rust}" --version >/dev/null 2>&1 || rustup component add "$name" ||
      fail "the Rust component $name is missing"
  done
  has redis-server || packages+=(redis-server)
  has valkey-server || packages+=(valkey-server)
  has_postgresql || packages+=(postgresql)
  has_in_sbin pgbouncer || packages+=(pgbouncer)
  has_in_sbin haproxy || packages+=(haproxy)
  has_in_sbin nginx || packages+=(nginx)
  # The tools of the files in config/.
  has promtool || packages+=(prometheus)
  has docker-compose || [ -x /usr/libexec/docker/cli-plugins/docker-compose ] || packages+=(docker-compose)
  has systemd-analyze || packages+=(systemd)
  # Chromium without a window, which has half the dependencies.
  has chromium-headless-shell || packages+=(chromium-headless-shell)
  { has node && has npm; } || packages+=(nodejs npm)
  # Opens and converts the exports, without a window.
  has soffice || packages+=(libreoffice-writer-nogui)
  has pdftotext || packages+=(poppler-utils)
  # Without these fonts a screenshot of Korean text shows boxes, and a PDF is not made.
  { speaks_korean && [ -e /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc ]; } ||
    packages+=(fontconfig fonts-noto-cjk)
  [ "${#packages[@]}" -eq 0 ] || install_from_debian "${packages[@]}"
  [ "$(node_version)" -ge "$NODE_MIN" ] || install_node
}

install_from_debian() {
  local as_root=()
  has apt-get || fail "missing, and there is no apt-get to install it: $*"
  if [ "$(id -u)" -ne 0 ]; then
    has sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; } ||
      fail "missing, and only root may install it: apt-get install $*"
    as_root=(sudo)
  fi
  printf '== Installing %s\n' "$*"
  # Debian starts a service on installation, unless this file forbids it. The tests start their own
  # services, so none must run now or after the next boot.
  "${as_root[@]}" sh -c '
    policy=/usr/sbin/policy-rc.d made=
    trap "rm -f \$made" EXIT
    trap "exit 130" INT TERM HUP
    if [ ! -e "$policy" ]; then
      made=$policy
      printf "#!/bin/sh\nexit 101\n" >"$policy"
      chmod 755 "$policy"
    fi
    # Debian 12 has Valkey among its backports alone.
    backports=/etc/apt/sources.list.d/galley-backports.list
    case " $* " in *" valkey-server "*)
      if grep -q "VERSION_CODENAME=bookworm" /etc/os-release; then
        made="$made $backports"
        apt-get update
        site=$(apt-get indextargets --format "\$(RELEASE) \$(SITE)" | sed -n "s/^bookworm //p" | head -n 1)
        printf "deb %s bookworm-backports main\n" "$site" >"$backports"
      fi ;;
    esac
    export DEBIAN_FRONTEND=noninteractive
    apt-get update && apt-get install --yes --no-install-recommends "$@" || exit 1
    for service in redis-server valkey-server postgresql pgbouncer haproxy nginx prometheus; do
      case " $* " in *" $service "*)
        if command -v systemctl >/dev/null; then systemctl disable "$service"; fi ;;
      esac
    done
  ' sh "$@" >"$folder/log" 2>&1 || {
    cat "$folder/log"
    fail "apt-get could not install $*"
  }
  hash -r
}

# Debian 12 has Node 18; then the script installs a newer one, pinned by its hash, beside the tests.
install_node() {
  [ -x "$(newer_node)" ] || npm ci --prefix tests/node --no-audit --no-fund --loglevel=error >/dev/null
  PATH=$(dirname "$(newer_node)"):$PATH
  hash -r
  [ "$(node_version)" -ge "$NODE_MIN" ] || fail "Node $NODE_MIN is missing: see nodejs.org"
}

newer_node() { find "$PWD/tests/node/node_modules" -path '*/bin/node' 2>/dev/null | head -n 1; }

# From here on cargo works offline.
install_crates() {
  local host manifest
  host=$(rustc -vV | sed -n 's/^host: //p')
  for manifest in Cargo.toml tests/guide/Cargo.toml; do
    cargo fetch --locked --offline --target "$host" --manifest-path "$manifest" >/dev/null 2>&1 || {
      printf '== Fetching crates\n'
      cargo fetch --locked --quiet --target "$host" --manifest-path "$manifest" ||
        fail "the crates could not be fetched"
    }
  done
  export CARGO_NET_OFFLINE=true
}

# Installs the packages of tests/package-lock.json, unless exactly those are installed.
install_packages() {
  (
    cd tests || exit 1
    node -e '
      const { readFileSync } = require("node:fs")
      const packages = (file) => JSON.parse(readFileSync(file, "utf8")).packages
      const { "": _, ...locked } = packages("package-lock.json")
      const there = packages("node_modules/.package-lock.json")
      const isRight = (name) => there[name]
        ? there[name].integrity === locked[name]?.integrity
        : locked[name].optional
      process.exit(Object.keys({ ...locked, ...there }).every(isRight) ? 0 : 1)
    ' 2>/dev/null || {
      printf '== Fetching packages\n'
      npm ci --no-audit --no-fund --loglevel=error >/dev/null
    }
  ) || fail "the packages of tests/package-lock.json could not be installed"
}

has() { command -v "$1" >/dev/null 2>&1; }

# Debian keeps initdb outside PATH.
has_postgresql() {
  has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
    { has pg_config && [ -x "$(pg_config --bindir)/initdb" ]; }
}

# Debian installs servers in /usr/sbin, outside a user's PATH.
has_in_sbin() { has "$1" || [ -x "/usr/sbin/$1" ]; }

node_version() { node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0; }

speaks_korean() { has fc-list && [ -n "$(fc-list :lang=ko family)" ]; }
