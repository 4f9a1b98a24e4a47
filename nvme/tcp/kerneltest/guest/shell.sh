# What a guest's script may call; doc.go says what each does.

# say sends one line to the host, with its number and a checksum, and again until the host says that it came whole: an emulated
# port loses bytes where the host's machine is very busy.
say() {
	local number sum verdict of
	number=$(($(cat /tmp/said 2>/dev/null || echo 0) + 1))
	echo $number >/tmp/said
	sum=$(printf '%s' "$*" | sha256sum | cut -c1-8)
	while :; do
		printf '\n%s %s %s\n' $number "$sum" "$*" >&3
		while read -t 20 -r verdict of <&3; do
			case "$verdict $of" in
			"ok $number") return 0 ;;
			again*) break ;;
			esac # else it is about a line before, which came twice
		done
	done
}

check() {
	name=$1
	shift
	say "begin $name"
	(
		set -e
		"$@"
	) >/tmp/check.out 2>&1 </dev/null &
	checked=$!
	(
		sleep "${LIMIT:-600}"
		echo "check $name: not done in ${LIMIT:-600} s" >>/tmp/check.out
		kill -9 $checked
	) >/dev/null 2>&1 3>&- &
	watch=$!
	wait $checked
	result=$?
	kill $watch 2>/dev/null
	wait $watch 2>/dev/null
	say "result $result $name $(tail -c 16384 /tmp/check.out | base64 -w 0)"
	return $result
}

skip() {
	name=$1
	shift
	say "skip $name $*"
}

keep() {
	say "file $1 $(base64 -w 0 "$2")"
}

host() {
	say "ask $(printf '%s\n' "$@" | base64 -w 0)"
	while read -r verdict answer <&3; do
		[ "$verdict" != yes ] && [ "$verdict" != no ] || break
	done
	printf '%s' "$answer" | base64 -d
	[ "$verdict" = yes ]
}

wait_for() {
	tries=$(($1 * 10))
	shift
	while ! "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		if [ $tries -le 0 ]; then
			echo "still failing: $*"
			"$@"
			return
		fi
		sleep 0.1
	done
}
