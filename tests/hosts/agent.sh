#!/usr/bin/env bash
# What mpirun calls in the place of ssh:  agent.sh HOST COMMAND...
# HOST is a network namespace of tests/hosts/hosts.py; the command sees that host's name, addresses and routes.
# ONNXTRAIN_HOSTS is the prefix of the namespaces.
set -euo pipefail
host=$1
shift
exec ip netns exec "$ONNXTRAIN_HOSTS-$host" unshare --uts sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "$host" "$@"
