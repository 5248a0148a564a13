#!/bin/sh
# The first program of a guest. Gives it what may change of a system that is only read, plugs
# it in, turns its clock, and makes way for systemd. What differs between guests are variables
# that stand on the kernel's command line.
set -eu
export PATH=/usr/sbin:/usr/bin TERM=dumb

mount -n -t proc proc /proc
mount -n -t hostfs -o "$LAB_FILES,ro" none /lab
mount -n -t tmpfs -o mode=1777 tmpfs /tmp
mkdir /tmp/new
for folder in etc var root; do
    mount -n -t tmpfs -o mode=755 tmpfs /tmp/new
    cp -a "/$folder/." /tmp/new/
    mount -n --move /tmp/new "/$folder"
done
rmdir /tmp/new

echo guest > /etc/hostname
printf '127.0.0.1 localhost\n%s guest\n' "$LAB_ADDRESS" > /etc/hosts
printf 'nameserver %s\n' "$LAB_GATEWAY" > /etc/resolv.conf
# A machine that has been started before: at its first start, systemd would enable what it
# finds, and nobody could ask for it later.
echo 5f1b0a3e7c6d4a2f9e8d7c6b5a493827 > /etc/machine-id
systemd-sysusers > /dev/null
systemctl --quiet enable lab.socket

ip link set lo up
ip addr add "$LAB_ADDRESS/24" dev vec0
ip link set vec0 up
ip route add default via "$LAB_GATEWAY"

# As DHCP would: the server is known, and nobody asks it.
mkdir /etc/systemd/timesyncd.conf.d
printf '[Time]\nNTP=%s\n' "$LAB_GATEWAY" > /etc/systemd/timesyncd.conf.d/lab.conf
date --set "@$(($(date +%s) + LAB_AHEAD))"

exec /usr/lib/systemd/systemd --unit=multi-user.target
