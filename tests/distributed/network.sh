# Sourced by run.sh. Makes 7 network namespaces, node1 ... node7, which a bridge joins, as one machine
# each; all in a namespace of this script, so that nothing is left when it ends. Needs root.
if [ -z "${CLOZE_OWN_NETWORK:-}" ]; then
  [ "$(id -u)" = 0 ] || { echo "run.sh: needs root, for network namespaces"; exit 77; }
  for tool in mpirun ip tc unshare nsenter; do
    command -v $tool > /dev/null || { echo "run.sh: $tool is missing"; exit 77; }
  done
  CLOZE_OWN_NETWORK=1 exec unshare --net --mount "$self/run.sh" "$@"
fi
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
ip link set lo up
ip link add bridge type bridge
ip addr add 10.99.0.254/24 dev bridge
ip link set bridge up
for i in 1 2 3 4 5 6 7; do
  ip netns add node$i
  ip link add veth$i type veth peer name eth0 netns node$i
  ip link set veth$i master bridge up
  ip -n node$i addr add 10.99.0.$i/24 dev eth0
  ip -n node$i link set eth0 up
  ip -n node$i link set lo up
done

# limit RATE: the links of all nodes carry RATE, for example 1gbit, in each direction; "none": no limit.
limit() {
  for i in 1 2 3 4 5 6 7; do
    ip netns exec node$i tc qdisc del dev eth0 root 2> /dev/null
    tc qdisc del dev veth$i root 2> /dev/null
    [ "$1" = none ] && continue
    ip netns exec node$i tc qdisc add dev eth0 root tbf rate "$1" burst 1mb latency 20ms || return 1
    tc qdisc add dev veth$i root tbf rate "$1" burst 1mb latency 20ms || return 1
  done
  return 0
}

# Makes ./agent, by which mpirun starts a rank on each node, instead of ssh. $PIN: with its own core.
make_agent() {
  cat > agent << 'END'
#!/bin/sh
node=$1; shift
pin=; [ -z "${PIN:-}" ] || pin="taskset -c $((${node#node} - 1))"
exec nsenter --net=/run/netns/"$node" unshare --uts sh -c "hostname $node; exec $pin $*"
END
  chmod +x agent
  export OMPI_MCA_plm_rsh_agent=$PWD/agent PRTE_MCA_plm_ssh_agent=$PWD/agent
}
export OMPI_MCA_btl=self,tcp OMPI_MCA_pml=ob1 OMPI_MCA_btl_tcp_if_include=10.99.0.0/24 OMPI_MCA_oob_tcp_if_include=10.99.0.0/24
export PRTE_MCA_prte_if_include=10.99.0.0/24

# nodes N: the hosts of N ranks.
nodes() { seq -s, -f 'node%.0f' "$1"; }
