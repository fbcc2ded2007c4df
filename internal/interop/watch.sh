#!/usr/bin/env bash
# Runs a stdio server and logs its start and its end.
#
# usage: watch.sh LOG COMMAND [ARG...]
#
# LOG gets one line `start PID` and one line `end PID CODE HOW`. HOW is `signal` after SIGTERM, and
# `input` if the server ended because its input did. LOG.stderr gets the server's standard error.
log=$1
shift
how=input
"$@" <&0 2>>"$log.stderr" &
pid=$!
trap 'how=signal; kill -TERM $pid 2>/dev/null' TERM
echo "start $pid" >>"$log"
wait $pid
code=$?
while kill -0 $pid 2>/dev/null; do # the trap interrupts the first wait
	wait $pid
	code=$?
done
echo "end $pid $code $how" >>"$log"
exit $code
