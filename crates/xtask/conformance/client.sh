# Runs the client under test for one scenario and keeps how it ended, which the suite does not.
"$HAFT_CONFORMANCE_CLIENT" "$@" &
client=$!
ending="$HAFT_CONFORMANCE_ENDINGS/$MCP_CONFORMANCE_SCENARIO"
mkdir -p "$(dirname "$ending")"
# The suite ends what takes too long, and then waits for the client's output to close.
trap 'kill -KILL "$client"; echo timeout > "$ending"; exit 143' TERM
wait "$client"
code=$?
echo "$code" > "$ending"
exit "$code"
