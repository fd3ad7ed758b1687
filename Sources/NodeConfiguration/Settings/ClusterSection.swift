package import Cluster
package import Ground
package import Telemetry

/// The settings of the cluster.
package struct ClusterSection: SettingSection {
    /// The heading in `--help`.
    package static let title = "Cluster"

    package let clusterSecretFile = SettingKey(
        "cluster-secret-file", .path, example: "/etc/nuthatch/cluster-secret",
        meaning: "File with the secret that the nodes of a cluster share; opens peer-listen",
        advice: "A secret a line, at least 32 bytes: the first dials, all are accepted. SIGHUP "
            + "reads it again, but turns the cluster neither on nor off.")

    package let join = SettingKey(
        "join", listOf: .hostPort,
        meaning: "Where other nodes listen for peers; a name stands for all its addresses",
        advice: "The same for all nodes, this one among them. Looked up again for ever; a node "
            + "that finds itself under it does not mind.")

    package let nodeName = SettingKey(
        "node-name", .name, needsRestart: true,
        meaning:
            "What this node is called, whatever becomes of its directory; no other node may be "
            + "called so",
        advice: "A name that stays when the node is replaced: a node that comes back without its "
            + "directory, or never had one, takes the place of the one before it at once. "
            + "Where all share one volume, @directory: its directory's name there.")

    package let expect = SettingKey(
        "expect", .countOrNone(0...256), default: "0", needsRestart: true,
        meaning:
            "How many nodes a new cluster is to begin with, more than half of which open it; 0 "
            + "for all that join stands for; the same for all nodes",
        advice: "Where nodes come one after the other, or some may be missing. A cluster that is "
            + "there is joined whatever it says.")

    package let joinTimeout = SettingKey(
        "join-timeout", .duration(.zero ... .seconds(86_400)), default: "30s", needsRestart: true,
        meaning:
            "How long a node looks for its cluster before it serves all the same: then it asks "
            + "origins about each entry once per fence",
        advice: "/readyz says joining until then; nuthatch status says what is missing.")

    package let peerListen = SettingKey(
        "peer-listen", .address, default: "127.0.0.1:8082", needsRestart: true,
        meaning: "Where peers are served; port 0 lets the kernel choose",
        advice: "An address that the other nodes reach, or 0.0.0.0; closed without a secret.")

    package let peerAdvertise = SettingKey(
        "peer-advertise", .hostPort, note: "peer-listen, as others reach it", needsRestart: true,
        meaning: "Where the other nodes are told to reach this one",
        advice: "Give it where an address is translated on the way, or a name is steadier.")

    package let replicas = SettingKey(
        "replicas", .count(1...5), default: "2", needsRestart: true,
        meaning: "Nodes that keep an image, its owners; the same for all nodes",
        advice: "With 1 the death of a node takes its images along; more than 2 costs disk and "
            + "network on each fetch.")

    package let ringWeight = SettingKey(
        "ring-weight", .count(1...65_535), default: "100", needsRestart: true,
        meaning: "How many images this node owns, beside the other nodes' weights",
        advice: "Twice as much for a node with twice the disk.")

    package let ringWeightLimit = SettingKey(
        "ring-weight-limit", .count(1...65_535), default: "400", needsRestart: true,
        meaning: "What a node's ring-weight counts for at most; the same for all nodes",
        advice: "As the largest ring-weight that is meant: whoever holds the secret may declare "
            + "any.")

    package let handOverTimeout = SettingKey(
        "hand-over-timeout", .duration(.zero ... .seconds(86_400)), default: "0s",
        meaning: "How long a node that is told to stop hands over what it keeps, before it leaves",
        advice: "For nodes that do not come back, as after scaling down; one that restarts finds "
            + "its disk as it was. It comes before drain-timeout.")

    package let fence = SettingKey(
        "fence", .durationOrOff(.seconds(2) ... .seconds(600)), default: "10s", needsRestart: true,
        meaning:
            "How long after a purge is durable at a majority a node that was cut off may go on "
            + "as before; the same for all nodes",
        advice: "A node that cannot prove within it that it knows every purge asks the origin "
            + "about each entry once per fence. off trades that guarantee away.")

    package let forgetAfter = SettingKey(
        "forget-after", .duration(.seconds(60) ... .seconds(604_800)), default: "1h",
        needsRestart: true,
        meaning: "How long a member may say nothing before no majority waits for it any more",
        advice: "It is counted again when it comes back. nuthatch members forget does it "
            + "at once for one that is gone for good.")
}
