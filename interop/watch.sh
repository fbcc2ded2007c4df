#!/usr/bin/env bash
# Stands between a client and a stdio server, and writes down how the server fared.
#
# usage: watch.sh LOG COMMAND [ARG...]
#
# LOG gets one line `start PID` and one line `end PID CODE HOW`, where HOW is `input` when the server ended because its
# input did, and `signal` when somebody sent SIGTERM. LOG.stderr gets what the server had to say.
log=$1
shift
how=input
"$@" <&0 2>>"$log.stderr" &
pid=$!
trap 'how=signal; kill -TERM $pid 2>/dev/null' TERM
echo "start $pid" >>"$log"
wait $pid
code=$?
while kill -0 $pid 2>/dev/null; do # the trap ends the first wait
	wait $pid
	code=$?
done
echo "end $pid $code $how" >>"$log"
exit $code
