#!/bin/sh
# postgres.sh: sees to a PostgreSQL that tests can start. In CI, as root, Debian's package
# is installed where it is missing; elsewhere it is left to you, and the tests that need it
# are skipped.
set -eu

found() { command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }

if found; then
	exit 0
fi
if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	# No server of the machine's own is wanted: tests start theirs.
	mkdir -p /etc/postgresql-common/createcluster.d
	echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/none.conf
	if apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null && found; then
		exit 0
	fi
fi
echo "postgres: no PostgreSQL here, so that its tests are left out; apt-get install postgresql, or your system's package, brings them in" >&2
