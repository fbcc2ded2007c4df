#!/bin/sh
# Runs a command in a network that has nothing but this machine, with an address that is public
# elsewhere: webhooks go to no other.
ip link set lo up && ip address add 9.9.9.9/32 dev lo && exec "$@"
