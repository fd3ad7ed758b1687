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
        "join", listOf: .hostPort, isSameOnAllNodes: true,
        meaning: "Peer addresses of the nodes; a name stands for all its addresses",
        advice: "The same list for all nodes, including this one. Names are resolved repeatedly; "
            + "a node ignores its own address.")

    package let nodeName = SettingKey(
        "node-name", .name, needsRestart: true,
        meaning: "Name of this node, independent of its directory; no other node may have the same",
        advice: "Choose a name that stays when the node is replaced: a node that comes back "
            + "without its directory, or never had one, takes its predecessor's place at once. "
            + "If all share one volume, use @directory: its directory's name there.")

    package let expect = SettingKey(
        "expect", .countOrNone(0...256), default: "0", needsRestart: true,
        meaning:
            "Size of a new cluster, which forms when more than half of its nodes have met; 0 "
            + "for all addresses of join; the same for all nodes",
        advice: "Set it if nodes start one after the other, or some may be missing. It does not "
            + "affect joining an existing cluster.")

    package let joinTimeout = SettingKey(
        "join-timeout", .duration(.zero ... .seconds(86_400)), default: "30s", needsRestart: true,
        meaning:
            "Time for which a node looks for its cluster before it serves; it is then fenced",
        advice: "/readyz reports joining until then; nuthatch status names the missing nodes.")

    package let peerListen = SettingKey(
        "peer-listen", .address, default: "127.0.0.1:8082", needsRestart: true,
        meaning: "Address for peers; port 0 lets the kernel choose",
        advice: "Use an address that other nodes can reach, or 0.0.0.0; closed without a secret.")

    package let peerAdvertise = SettingKey(
        "peer-advertise", .hostPort, note: "peer-listen, as others reach it", needsRestart: true,
        meaning: "Address that this node announces to the other nodes",
        advice: "Set it behind address translation, or if a name is more stable.")

    package let adminAdvertise = SettingKey(
        "admin-advertise", .baseURL, example: "http://nuthatch-1.example:8081", needsRestart: true,
        meaning: "URL of this node's admin port for operators, to which the other nodes link",
        advice: "The URL that an operator's browser can reach; without it there is no link.")

    package let replicas = SettingKey(
        "replicas", .count(1...5), default: "2", needsRestart: true, isSameOnAllNodes: true,
        meaning: "Nodes that store an image, its owners; the same for all nodes",
        advice: "With 1 the images of a failed node are lost; more than 2 costs disk and network "
            + "on each fetch.")

    package let ringWeight = SettingKey(
        "ring-weight", .count(1...65_535), default: "100", needsRestart: true,
        meaning: "Share of images that this node owns, relative to the other nodes' weights",
        advice: "Double it for a node with twice the disk.")

    package let ringWeightLimit = SettingKey(
        "ring-weight-limit", .count(1...65_535), default: "400", needsRestart: true,
        isSameOnAllNodes: true,
        meaning: "Upper limit of every node's ring-weight; the same for all nodes",
        advice: "Set it to the largest ring-weight in use; a member can announce any weight.")

    package let handOverTimeout = SettingKey(
        "hand-over-timeout", .duration(.zero ... .seconds(86_400)), default: "0s",
        meaning: "Maximum time for which a stopping node hands off its entries before it leaves",
        advice: "For nodes that will not return, as after scaling down; a node that restarts keeps "
            + "its disk. It precedes drain-timeout.")

    package let fence = SettingKey(
        "fence", .durationOrOff(.seconds(2) ... .seconds(600)), default: "10s", needsRestart: true,
        isSameOnAllNodes: true,
        meaning:
            "Time after a purge is durable at a majority in which an isolated node may still "
            + "serve what it covers; the same for all nodes",
        advice: "A node that cannot prove within this time that it knows every purge is fenced: it "
            + "revalidates each entry once per fence. off gives up the guarantee.")

    package let forgetAfter = SettingKey(
        "forget-after", .duration(.seconds(60) ... .seconds(604_800)), default: "1h",
        needsRestart: true,
        meaning: "Time for which a member may be silent before majorities no longer wait for it",
        advice: "It becomes a voter again when it returns. nuthatch members forget removes a "
            + "lost member at once.")
}
