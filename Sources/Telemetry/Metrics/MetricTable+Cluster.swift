extension MetricFamily {
    /// The families of cluster membership.
    static let clusterFamilies = [
        MetricFamily(
            "nuthatch_members", .gauge, "members", by: "state",
            [(.membersAlive, "alive"), (.membersSuspected, "suspected"), (.membersDead, "dead")],
            meaning: "Members of the cluster that are not known to have left, this node included",
            advice: "A member that stays suspected or dead is named at /admin/v1/members."),
        MetricFamily(
            "nuthatch_peer_connections", .gauge, "connections", .peerConnections,
            meaning: "Members with whom there is a connection",
            advice: "One less than the members that are alive; fewer means a network that is split."
        ),
        MetricFamily(
            "nuthatch_member_changes_total", .counter, "changes", by: "state",
            [
                (.memberChangesToAlive, "alive"), (.memberChangesToSuspected, "suspected"),
                (.memberChangesToDead, "dead"), (.memberChangesToLeft, "left"),
            ],
            meaning: "Times that something else was believed of another member, by what",
            advice: "Suspected again and again: a node or a line that is overloaded."),
        MetricFamily(
            "nuthatch_refutations_total", .counter, "refutations", .refutations,
            meaning: "Times that this node had to say that it lives",
            advice: "Others do not hear from it in time: look at its CPU and its network."),
        MetricFamily(
            "nuthatch_gossip_sent_total", .counter, "messages", by: "kind",
            [
                (.gossipPingsSent, "ping"), (.gossipAcksSent, "ack"),
                (.gossipPingRequestsSent, "ping_request"), (.gossipNacksSent, "nack"),
                (.gossipUpdatesSent, "news"), (.gossipTablesSent, "table"),
            ],
            meaning: "Messages to other members about who is here",
            advice: "Many ping requests: members do not answer pings in time."),
        MetricFamily(
            "nuthatch_gossip_received_total", .counter, "messages", by: "kind",
            [
                (.gossipPingsReceived, "ping"), (.gossipAcksReceived, "ack"),
                (.gossipPingRequestsReceived, "ping_request"), (.gossipNacksReceived, "nack"),
                (.gossipUpdatesReceived, "news"), (.gossipTablesReceived, "table"),
            ],
            meaning: "Messages of other members about who is here",
            advice: "None while others are alive: this node is cut off."),
    ]

    /// The families of traffic between peers.
    static let peerFamilies = [
        MetricFamily(
            "nuthatch_peer_handshakes_total", .counter, "handshakes", by: "outcome",
            [(.peerHandshakes, "ok"), (.peerHandshakesFailed, "failed")],
            meaning: "Connections with peers, dialled or accepted, by whether they were opened",
            advice: "The log says why: the secret, the address, or another version."),
        MetricFamily(
            "nuthatch_peer_faults_total", .counter, "connections", .peerFaults,
            meaning: "Connections with peers broken off because of what they sent",
            advice: "The log says what; nodes of versions that are not next to each other, perhaps."
        ),
        MetricFamily(
            "nuthatch_peer_questions_total", .counter, "questions", by: "kind",
            [(.peerGetsSent, "get"), (.peerProbesSent, "probe")],
            meaning: "Questions to peers, by whether they may cause a fetch (get) or not (probe)",
            advice: "A get is a miss of an image that another node owns."),
        MetricFamily(
            "nuthatch_peer_questions_lost_total", .counter, "questions", .peerRequestsFailed,
            meaning: "Questions to peers that no whole answer came to",
            advice: "Ordinary when a node dies; the next owner, or the origin, was asked instead."),
        MetricFamily(
            "nuthatch_peer_probes_late_total", .counter, "misses", .peerProbesTimedOut,
            meaning: "Misses of an owner for which not all probes were answered in time",
            advice: "What a busy node holds may have been fetched again; see which one is slow."),
        MetricFamily(
            "nuthatch_peer_policies_differ_total", .counter, "questions", .peerPoliciesDiffer,
            meaning: "Questions about a site of which two nodes have other settings",
            advice: "Give all nodes the same file: until then each asks the origin for itself."),
        MetricFamily(
            "nuthatch_peer_questions_answered_total", .counter, "questions", by: "kind",
            [(.peerGetsReceived, "get"), (.peerProbesReceived, "probe")],
            meaning: "Questions of peers, by whether they may cause a fetch (get) or not (probe)",
            advice: "Should be alike on all nodes of the same weight."),
        MetricFamily(
            "nuthatch_peer_answers_total", .counter, "answers", .peerResponsesUsed,
            meaning: "Misses that a peer answered",
            advice: "What these do not save of the misses went to the origin."),
        MetricFamily(
            "nuthatch_peer_received_bytes_total", .counter, "bytes", .peerReceivedBytes,
            meaning: "Bytes of bodies that peers gave",
            advice: "If it comes near what the network carries, give the nodes more memory."),
        MetricFamily(
            "nuthatch_peer_frames_sent_total", .counter, "frames", .peerFramesSent,
            meaning: "Frames to peers: questions, answers, and what is said of invalidations",
            advice: "Many with few questions are purges; put more targets into one request."),
        MetricFamily(
            "nuthatch_peer_sent_bytes_total", .counter, "bytes", .peerSentBytes,
            meaning: "Bytes of frames to peers, bodies included",
            advice: "If it comes near what the network carries, give the nodes more memory."),
        MetricFamily(
            "nuthatch_peer_touches_total", .counter, "touches", by: "way",
            [(.touchesSent, "sent"), (.touchesReceived, "received"), (.touchesLost, "lost")],
            meaning: "Notes of uses to and from the owners of entries, and those not sent",
            advice: "Lost ones make images look idle that others serve; see the members."),
        MetricFamily(
            "nuthatch_offers_total", .counter, "offers", by: "outcome",
            [
                (.offersSent, "made"), (.offersAccepted, "kept"), (.offersRefused, "refused"),
                (.offersDropped, "dropped"),
            ],
            meaning:
                "Images that other nodes were offered, because they own them, too, and what came "
                + "of it; dropped ones were not made for want of room or of a connection",
            advice: "After a change of members kept must rise until nothing waits or is open."),
        MetricFamily(
            "nuthatch_offers_pending", .gauge, "offers", by: "state",
            [(.offersQueued, "waiting"), (.offersUnanswered, "open")],
            meaning: "Offers that are to be made, and those made that are not answered",
            advice: "0 when everybody has been offered what it owns, and has answered."),
        MetricFamily(
            "nuthatch_handing_over", .gauge, "nodes", .handoffActive,
            meaning: "Whether the node hands over everything that it holds, to go: 1, else 0",
            advice: "0 again while nuthatch_offers_pending is not is a node that nobody answers."),
        MetricFamily(
            "nuthatch_offers_received_total", .counter, "offers", by: "outcome",
            [(.offersReceived, "received"), (.offersFetched, "taken")],
            meaning: "Offers of other nodes, and images that were fetched because of one and kept",
            advice: "What is held already is not taken; many that are not are a disk in trouble."),
    ]
}

extension MetricFamily {
    /// The families of invalidations.
    static let invalidationFamilies = [
        MetricFamily(
            "nuthatch_purges_issued_total", .counter, "purges", by: "mode",
            [(.purgesHard, "hard"), (.purgesSoft, "soft")],
            meaning: "Purges that clients have asked this node for, repeats left out",
            advice: "Each reaches every node; its receipt says how far it is."),
        MetricFamily(
            "nuthatch_purges_refused_total", .counter, "requests", .purgesRefused,
            meaning: "Requests with the method PURGE of clients that may not use it",
            advice: "The access log says whose; purge-from and purge-token-file say who may."),
        MetricFamily(
            "nuthatch_invalidations_applied_total", .counter, "invalidations",
            .invalidationsApplied,
            meaning: "Records of the invalidation log that this node has applied since its start",
            advice: "Rises alike on all nodes; one that stays behind cannot be reached."),
        MetricFamily(
            "nuthatch_invalidation_records", .gauge, "records", .invalidationRecords,
            meaning: "Records of the invalidation log that are held for nodes that lack them",
            advice: "A node that was away for longer revalidates everything older once."),
        MetricFamily(
            "nuthatch_invalidation_names", .gauge, "names", .invalidationNames,
            meaning: "Purged URLs, prefixes and tags of which something older may be stored",
            advice: "At its limit all that is older is revalidated once; a bigger disk has more."),
        MetricFamily(
            "nuthatch_receipts_pending", .gauge, "purges", .receiptsPending,
            meaning: "Purges of this node that some counted member has yet to confirm",
            advice: "If it stays above 0, nuthatch_member_lag_records says who has not."),
        MetricFamily(
            "nuthatch_member_lag_records", .gauge, "records", .members(.lagRecords),
            meaning: "Invalidations that are synced here and that a member has not confirmed",
            advice: "Rising: the member is cut off or hangs; /admin/v1/members has its address."),
        MetricFamily(
            "nuthatch_members_counted", .gauge, "nodes", .voters,
            meaning: "Members of which a majority has to know a purge, as this node believes",
            advice: "More than are alive are some that nobody has forgotten yet."),
        MetricFamily(
            "nuthatch_joining", .gauge, "nodes", .joining,
            meaning: "Whether the node looks for its cluster and has found none: 1, else 0",
            advice:
                "nuthatch status says which of the places under join do not answer, and why; if no "
                + "other node has a cluster, nuthatch members bootstrap opens one."),
        MetricFamily(
            "nuthatch_fenced", .gauge, "nodes", .fenced,
            meaning: "Whether the node cannot prove that it knows every purge: 1, else 0",
            advice:
                "It asks origins about each entry once per fence; nuthatch members says whom it "
                + "does not reach."),
    ]
}
