package import Cluster
package import Ground
package import Telemetry

/// The settings of the cluster.
package struct ClusterSection: SettingSection {
    /// The heading in `--help`.
    package static let title = "Cluster"

    package let clusterSecretFile = SettingKey(
        "cluster-secret-file", .path, example: "/etc/nuthatch/cluster-secret",
        meaning: "File with the secret shared by the nodes of a cluster; opens peer-listen",
        advice: "One secret per line, at least 32 bytes: the first is used to dial, all are "
            + "accepted. SIGHUP rereads it, but does not turn the cluster on or off.")

    package let join = SettingKey(
        "join", listOf: .hostPort,
        meaning: "Where other nodes listen for peers; a name stands for all its addresses",
        advice: "The same list for all nodes, this one included. Names are looked up again for "
            + "as long as the node runs; a node ignores its own address.")

    package let nodeName = SettingKey(
        "node-name", .name, needsRestart: true,
        meaning: "Name of this node, independent of its directory; no other node may have the same",
        advice: "Choose a name that stays when the node is replaced: a node that comes back "
            + "without its directory, or never had one, takes its predecessor's place at once. "
            + "Where all share one volume, use @directory: its directory's name there.")

    package let expect = SettingKey(
        "expect", .countOrNone(0...256), default: "0", needsRestart: true,
        meaning:
            "Number of nodes that a new cluster begins with, more than half of which open it; 0 "
            + "for all that join stands for; the same for all nodes",
        advice: "Set it where nodes start one after the other, or some may be missing. An "
            + "existing cluster is joined whatever the value.")

    package let joinTimeout = SettingKey(
        "join-timeout", .duration(.zero ... .seconds(86_400)), default: "30s", needsRestart: true,
        meaning:
            "Time for which a node looks for its cluster before it serves anyway; it then asks "
            + "origins about each entry once per fence",
        advice: "/readyz reports joining until then; nuthatch status shows what is missing.")

    package let peerListen = SettingKey(
        "peer-listen", .address, default: "127.0.0.1:8082", needsRestart: true,
        meaning: "Where peers are served; port 0 lets the kernel choose",
        advice: "An address that the other nodes can reach, or 0.0.0.0; closed without a secret.")

    package let peerAdvertise = SettingKey(
        "peer-advertise", .hostPort, note: "peer-listen, as others reach it", needsRestart: true,
        meaning: "Address at which the other nodes are told to reach this one",
        advice: "Set it where addresses are translated on the way, or where a name is more stable.")

    package let replicas = SettingKey(
        "replicas", .count(1...5), default: "2", needsRestart: true,
        meaning: "Nodes that store an image, its owners; the same for all nodes",
        advice: "With 1 a node that dies takes its images with it; more than 2 costs disk and "
            + "network on each fetch.")

    package let ringWeight = SettingKey(
        "ring-weight", .count(1...65_535), default: "100", needsRestart: true,
        meaning: "Share of images that this node owns, relative to the other nodes' weights",
        advice: "Double it for a node with twice the disk.")

    package let ringWeightLimit = SettingKey(
        "ring-weight-limit", .count(1...65_535), default: "400", needsRestart: true,
        meaning: "Most that a node's ring-weight counts for; the same for all nodes",
        advice: "Set it to the largest ring-weight in use: anyone with the secret may declare any.")

    package let handOverTimeout = SettingKey(
        "hand-over-timeout", .duration(.zero ... .seconds(86_400)), default: "0s",
        meaning: "Longest time a node that is told to stop hands over its entries before it leaves",
        advice: "For nodes that do not come back, as after scaling down; one that restarts finds "
            + "its disk as it was. It precedes drain-timeout.")

    package let fence = SettingKey(
        "fence", .durationOrOff(.seconds(2) ... .seconds(600)), default: "10s", needsRestart: true,
        meaning:
            "Time after a purge is durable at a majority for which a node that was cut off may "
            + "go on as before; the same for all nodes",
        advice: "A node that cannot prove within it that it knows every purge asks the origin "
            + "about each entry once per fence. off gives up that guarantee.")

    package let forgetAfter = SettingKey(
        "forget-after", .duration(.seconds(60) ... .seconds(604_800)), default: "1h",
        needsRestart: true,
        meaning: "Time for which a member may be silent before majorities no longer wait for it",
        advice: "It counts again when it comes back. nuthatch members forget does this at once "
            + "for one that is gone for good.")
}
