#!/usr/bin/env bash
# demo.sh: from a clean clone to a login. Starts a lab, applies examples/demo
# with the provider built from this tree, logs in with nothing but terraform's
# outputs, and says where the time went. LAB_DIR and LAB_GUEST as for make lab-up.
set -euo pipefail
cd "$(dirname "$0")/.."

lab=$(realpath -m "${LAB_DIR:-.lab}")
guest=${LAB_GUEST:-container}
began=$SECONDS
step_began=0

step() {
  step_began=$SECONDS
  printf '\n== %s\n' "$*"
}

took() { printf '   (%d s)\n' $((SECONDS - step_began)); }

die() {
  printf '\ndemo: %s\n' "$*" >&2
  exit 1
}

# need COMMAND PACKAGE: the demo's own tools; the lab brings what it needs.
need() {
  command -v "$1" >/dev/null && return
  [ "$(id -u)" = 0 ] || die "$1 is missing; install the package $2, or run this as root"
  echo "installing $2"
  apt-get install -y -qq --no-install-recommends "$2" >/dev/null 2>&1 ||
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$2" >/dev/null; } ||
    die "$2 cannot be installed; see apt's message above"
}

# possible GUEST: can this host boot it? It prints why not.
possible() {
  [ "$1" != sim ] || return 0
  if [ "$(id -u)" != 0 ]; then
    echo "a $1 guest needs root, for its network and disks"
    return 1
  fi
  [ "$1" = container ] || return 0
  local name=dbaas-demo-$$
  if ! ip netns add "$name" 2>/dev/null; then
    echo 'this host does not allow network namespaces'
    return 1
  fi
  ip netns del "$name"
  if ! losetup -f >/dev/null 2>&1; then
    echo 'this host has no loop devices'
    return 1
  fi
}

# login SQL: as terraform's outputs say, and nothing else.
login() {
  PGPASSWORD=$("$terraform" -chdir=examples/demo output -raw password) \
    psql -X -At -d "$("$terraform" -chdir=examples/demo output -raw connection_uri)&sslrootcert=$lab/demo-ca.pem&connect_timeout=10" -c "$1"
}

# moment JSONPATH: a time of the instance's VMI, in seconds.
moment() {
  date -d "$(KUBECONFIG=$lab/kubeconfig kubectl -n tenant-acme get vmi pg-demo -o "jsonpath=$1")" +%s
}

# split says who took how long of an apply, by the VMI's own clock.
split() {
  local created running ready
  created=$(moment '{.metadata.creationTimestamp}')
  running=$(moment '{.status.phaseTransitionTimestamps[?(@.phase=="Running")].phaseTransitionTimestamp}')
  ready=$(moment '{.status.conditions[?(@.type=="Ready")].lastTransitionTime}')
  printf 'provider and Terraform  %3d s  (until the machine was asked for: %d s, after it was ready: %d s)\n' \
    $((created - apply_began + apply_ended - ready)) $((created - apply_began)) $((apply_ended - ready))
  printf 'cluster                 %3d s  (image, volumes, scheduling)\n' $((running - created))
  printf 'guest                   %3d s  (boot, PostgreSQL, ready)\n' $((ready - running))
}

# What the user's own Terraform is configured to do must not matter here.
unset TF_CLI_CONFIG_FILE TF_DATA_DIR

step 'tools'
command -v go >/dev/null || die 'Go is missing; see https://go.dev/doc/install'
need psql postgresql-client
need kubectl kubernetes-client
for fallback in "$guest" vm sim; do
  if why=$(possible "$fallback"); then
    guest=$fallback
    break
  fi
  echo "$why; trying another guest"
done
terraform=$(tools/terraform.sh) || die 'no Terraform: install terraform or tofu and repeat'
echo "$("$terraform" version | head -1), guest: $guest"
took

step "lab in $lab (the first start compiles a Kubernetes control plane: minutes)"
make --no-print-directory lab-up LAB_DIR="$lab" LAB_GUEST="$guest" || die "the lab did not start; its logs are in $lab/log"
took

step 'provider'
make --no-print-directory install LAB_DIR="$lab"
export TF_CLI_CONFIG_FILE=$lab/terraformrc CHECKPOINT_DISABLE=1 TF_IN_AUTOMATION=1
export TF_DATA_DIR=$lab/terraform TF_VAR_kubeconfig=$lab/tenant.kubeconfig
took

step 'terraform apply of examples/demo'
# With a dev override there is nothing to initialize, and init would look for a release.
created_now=1
KUBECONFIG=$lab/kubeconfig kubectl -n tenant-acme get vmi pg-demo >/dev/null 2>&1 && created_now=0
colour=()
[ -t 1 ] || colour=(-no-color)
apply_began=$(date +%s)
"$terraform" -chdir=examples/demo apply -auto-approve -input=false -compact-warnings "${colour[@]}" ||
  die "the apply failed; look at the instance with: KUBECONFIG=$lab/kubeconfig kubectl -n tenant-acme get vm,vmi,pvc,secret"
apply_ended=$(date +%s)
took

step 'login, with address and CA from terraform output'
"$terraform" -chdir=examples/demo output -raw ca >"$lab/demo-ca.pem"
if [ "$guest" = sim ]; then
  echo 'a simulated guest runs no PostgreSQL: no login'
else
  login "select version()" || die 'the login failed'
  login "select 'TLS: ' || version || ', ' || cipher from pg_stat_ssl where pid = pg_backend_pid()"
fi
took

step 'where the time went'
if ((created_now)); then split; else echo 'the instance stood already'; fi
printf 'everything: %d s\n' $((SECONDS - began))

cat <<END

Look around:
  export KUBECONFIG=$lab/kubeconfig TF_CLI_CONFIG_FILE=$TF_CLI_CONFIG_FILE TF_DATA_DIR=$TF_DATA_DIR TF_VAR_kubeconfig=$TF_VAR_kubeconfig
  kubectl -n tenant-acme get vm,vmi,pvc,secret -l dbaas.opencloud.wso2.com/instance=demo
  $terraform -chdir=examples/demo plan
End it:
  $terraform -chdir=examples/demo destroy
  make lab-down LAB_DIR=$lab
END
