# The kernel's target demands DH-HMAC-CHAP of our initiator, which the host of this guest runs. Sourced after forward.sh and
# nvmet.sh. KEY and CTRLKEY are the host's and the drive's.

at=$nvmet/hosts/$HOSTNQN
echo "$KEY" >"$at/dhchap_key"
echo "$CTRLKEY" >"$at/dhchap_ctrl_key"
dial() {
	echo "hmac($1)" >"$at/dhchap_hash"
	echo "$2" >"$at/dhchap_dhgroup"
	host dial "$1" "$2"
}
for group in null ffdhe2048 ffdhe3072 ffdhe4096 ffdhe6144 ffdhe8192; do
	check "dial-sha256-$group" dial sha256 $group
done
for hash in sha384 sha512; do
	check "dial-$hash-null" dial $hash null
	check "dial-$hash-ffdhe2048" dial $hash ffdhe2048
done
