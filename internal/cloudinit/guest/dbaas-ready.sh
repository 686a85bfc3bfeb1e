#!/bin/sh
# The readiness probe's constant command. Exit 0: converged for the document of
# this boot, and serving. Else one line says why not.
if ! read -r stamp verdict rest 2> /dev/null < /run/dbaas/ready; then
  echo "no result yet"
  exit 1
fi
read -r now _ < /proc/uptime
if [ $((${now%.*} - stamp)) -gt 30 ]; then
  echo "the result is stale: dbaas-watch.service does not run"
  exit 1
fi
echo "$verdict $rest"
[ "$verdict" = ready ]
