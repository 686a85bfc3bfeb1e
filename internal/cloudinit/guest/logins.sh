# shellcheck shell=bash disable=SC2034,SC2154 # the variables are bootstrap.sh's
# Break-glass logins: the user "dbaas", who may become root. The machine's SSH
# server stays as its image has it.

login=dbaas

logins() {
  step=ssh
  local home=/home/$login
  if [ -z "$DBAAS_SSH_KEYS" ]; then
    rm -f "$home/.ssh/authorized_keys"
    return
  fi
  # No password, and not locked either: sshd refuses locked users.
  id "$login" > /dev/null 2>&1 || useradd --system --create-home --home-dir "$home" --shell /bin/bash --password '*' "$login" ||
    die "cannot make the user $login"
  install -d -m 0700 -o "$login" -g "$login" "$home/.ssh"
  printf '%s\n' "$DBAAS_SSH_KEYS" | durable "$home/.ssh/authorized_keys" 0600 "$login:$login"
  [ -x /usr/sbin/sshd ] || fetch openssh-server
  # cloud-init makes host keys, unless the image tells it not to.
  if ! compgen -G '/etc/ssh/ssh_host_*_key' > /dev/null; then
    ssh-keygen -q -A || die "cannot make the SSH server's host keys"
    systemctl --no-block restart ssh.service || say warning "the SSH server does not start"
  fi
  [ -x /usr/bin/sudo ] || fetch sudo
  echo "$login ALL=(ALL) NOPASSWD: ALL" | durable /etc/sudoers.d/90-dbaas 0440 root:root
  say ok "$(wc -l < "$home/.ssh/authorized_keys") keys of the user $login"
}
