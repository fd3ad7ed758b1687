/// The metrics of the cluster.
enum ClusterMetrics {
    /// The families in the order in which they are exposed.
    static let families = membershipFamilies + peerFamilies + invalidationFamilies

    /// The families of cluster membership.
    private static let membershipFamilies = [
        MetricFamily(
            "nuthatch_members", .gauge, "members", by: "state",
            [(.membersAlive, "alive"), (.membersSuspected, "suspected"), (.membersDead, "dead")],
            meaning: "Members of the cluster that are not known to have left, including this node",
            advice: "/admin/v1/members names the members that stay suspected or dead."),
        MetricFamily(
            "nuthatch_peer_connections", .gauge, "connections", .peerConnections,
            meaning: "Members that this node has a connection with",
            advice:
                "One less than the number of alive members; fewer means that the network is "
                + "partitioned."),
        MetricFamily(
            "nuthatch_member_changes_total", .counter, "changes", by: "state",
            [
                (.memberChangesToAlive, "alive"), (.memberChangesToSuspected, "suspected"),
                (.memberChangesToDead, "dead"), (.memberChangesToLeft, "left"),
            ],
            meaning: "Changes of other members' states, by the new state",
            advice: "suspected repeatedly: a node or a network path is overloaded."),
        MetricFamily(
            "nuthatch_refutations_total", .counter, "refutations", .refutations,
            meaning: "Suspicions of this node that it refuted",
            advice: "Other nodes do not hear from it in time: check its CPU and network."),
        MetricFamily(
            "nuthatch_gossip_sent_total", .counter, "messages", by: "kind",
            [
                (.gossipPingsSent, "ping"), (.gossipAcksSent, "ack"),
                (.gossipPingRequestsSent, "ping_request"), (.gossipNacksSent, "nack"),
                (.gossipUpdatesSent, "news"), (.gossipTablesSent, "table"),
            ],
            meaning: "Membership messages sent to other members",
            advice: "Many ping requests: members do not reply to pings in time."),
        MetricFamily(
            "nuthatch_gossip_received_total", .counter, "messages", by: "kind",
            [
                (.gossipPingsReceived, "ping"), (.gossipAcksReceived, "ack"),
                (.gossipPingRequestsReceived, "ping_request"), (.gossipNacksReceived, "nack"),
                (.gossipUpdatesReceived, "news"), (.gossipTablesReceived, "table"),
            ],
            meaning: "Membership messages received from other members",
            advice: "None while other members are alive: this node is isolated."),
    ]

    /// The families of traffic between peers.
    private static let peerFamilies = [
        MetricFamily(
            "nuthatch_peer_handshakes_total", .counter, "handshakes", by: "outcome",
            [(.peerHandshakes, "ok"), (.peerHandshakesFailed, "failed")],
            meaning: "Connections with peers, dialled or accepted, by the outcome of the handshake",
            advice: "The log has the reason: the secret, the address, or an incompatible version."),
        MetricFamily(
            "nuthatch_peer_faults_total", .counter, "connections", .peerFaults,
            meaning: "Connections with peers closed because of invalid data",
            advice: "The log has the details; the versions of the nodes may be too far apart."),
        MetricFamily(
            "nuthatch_peer_questions_total", .counter, "questions", by: "kind",
            [(.peerGetsSent, "get"), (.peerProbesSent, "probe")],
            meaning: "Queries to peers: get may cause a fetch, probe does not",
            advice: "A get is a miss of an entry that another node owns."),
        MetricFamily(
            "nuthatch_peer_questions_lost_total", .counter, "questions", .peerRequestsFailed,
            meaning: "Queries to peers without a complete reply",
            advice: "Normal when a node dies; the next owner or the origin was used instead."),
        MetricFamily(
            "nuthatch_peer_probes_late_total", .counter, "misses", .peerProbesTimedOut,
            meaning: "Misses at an owner in which a probe got no reply in time",
            advice:
                "Entries that a busy node holds may have been fetched again; look for a slow "
                + "node."),
        MetricFamily(
            "nuthatch_peer_policies_differ_total", .counter, "questions", .peerPoliciesDiffer,
            meaning: "Queries about a site whose settings differ between the two nodes",
            advice:
                "Give all nodes the same configuration file; until then, each fetches from "
                + "the origin."),
        MetricFamily(
            "nuthatch_peer_questions_answered_total", .counter, "questions", by: "kind",
            [(.peerGetsReceived, "get"), (.peerProbesReceived, "probe")],
            meaning: "Queries from peers: get may cause a fetch, probe does not",
            advice: "Should be similar on all nodes of the same weight."),
        MetricFamily(
            "nuthatch_peer_answers_total", .counter, "answers", .peerResponsesUsed,
            meaning: "Misses that a peer served",
            advice: "The remaining misses went to the origin."),
        MetricFamily(
            "nuthatch_peer_received_bytes_total", .counter, "bytes", .peerReceivedBytes,
            meaning: "Body bytes received from peers",
            advice: "Near the capacity of the network, give the nodes more memory."),
        MetricFamily(
            "nuthatch_peer_frames_sent_total", .counter, "frames", .peerFramesSent,
            meaning: "Frames sent to peers: queries, replies and invalidations",
            advice: "Many frames with few queries are purges; put more targets into one request."),
        MetricFamily(
            "nuthatch_peer_sent_bytes_total", .counter, "bytes", .peerSentBytes,
            meaning: "Bytes of frames sent to peers, including bodies",
            advice: "Near the capacity of the network, give the nodes more memory."),
        MetricFamily(
            "nuthatch_peer_touches_total", .counter, "touches", by: "way",
            [(.touchesSent, "sent"), (.touchesReceived, "received"), (.touchesLost, "lost")],
            meaning:
                "Reports of accesses to and from the owners of entries, and those that were "
                + "not sent",
            advice:
                "lost: entries that other nodes serve look idle to their owners; see the "
                + "members."),
        MetricFamily(
            "nuthatch_offers_total", .counter, "offers", by: "outcome",
            [
                (.offersSent, "made"), (.offersAccepted, "kept"), (.offersRefused, "refused"),
                (.offersDropped, "dropped"),
            ],
            meaning:
                "Entries offered to other nodes that own them too, by outcome; dropped: not "
                + "offered for lack of room or of a connection",
            advice:
                "After a change of members, kept must rise until nuthatch_offers_pending is "
                + "0."),
        MetricFamily(
            "nuthatch_offers_pending", .gauge, "offers", by: "state",
            [(.offersQueued, "waiting"), (.offersUnanswered, "open")],
            meaning: "Offers that are queued, and offers without a response",
            advice: "0 when every owner has been offered its entries and has responded."),
        MetricFamily(
            "nuthatch_handing_over", .gauge, "nodes", .handoffActive,
            meaning: "Whether the node is handing off all its entries: 1 if so, else 0",
            advice:
                "0 while nuthatch_offers_pending is above 0: a node does not respond to "
                + "offers."),
        MetricFamily(
            "nuthatch_offers_received_total", .counter, "offers", by: "outcome",
            [(.offersReceived, "received"), (.offersFetched, "taken")],
            meaning:
                "Offers received from other nodes, and entries fetched and kept because of "
                + "one",
            advice:
                "Entries that are held already are not taken; many others not taken mean a "
                + "disk problem."),
    ]

    /// The families of invalidations.
    private static let invalidationFamilies = [
        MetricFamily(
            "nuthatch_purges_issued_total", .counter, "purges", by: "mode",
            [(.purgesHard, "hard"), (.purgesSoft, "soft")],
            meaning: "Purges issued at this node, without repeated requests",
            advice: "Each reaches every node; its receipt shows the progress."),
        MetricFamily(
            "nuthatch_purges_refused_total", .counter, "requests", .purgesRefused,
            meaning: "PURGE requests from clients that are not allowed to purge",
            advice:
                "The access log names the clients; purge-from and purge-token-file allow "
                + "them."),
        MetricFamily(
            "nuthatch_invalidations_applied_total", .counter, "invalidations",
            .invalidationsApplied,
            meaning: "Records of the invalidation log applied by this node since its start",
            advice: "Rises equally on all nodes; a node that stays behind cannot be reached."),
        MetricFamily(
            "nuthatch_invalidation_records", .gauge, "records", .invalidationRecords,
            meaning: "Records of the invalidation log held for nodes that lack them",
            advice: "A node that was away for longer revalidates all older entries once."),
        MetricFamily(
            "nuthatch_invalidation_names", .gauge, "names", .invalidationNames,
            meaning: "Purged URLs, prefixes and tags for which older entries may still be stored",
            advice:
                "At its limit all older entries are revalidated once; a larger disk has a "
                + "higher limit."),
        MetricFamily(
            "nuthatch_receipts_pending", .gauge, "purges", .receiptsPending,
            meaning: "Purges of this node that a voter has not confirmed",
            advice:
                "If it stays above 0, see nuthatch_member_lag_records for the members that "
                + "lag."),
        MetricFamily(
            "nuthatch_member_lag_records", .gauge, "records", .members(.lagRecords),
            meaning: "Invalidations synced here that a member has not confirmed",
            advice: "Rising: the member is isolated or hangs; /admin/v1/members has its address."),
        MetricFamily(
            "nuthatch_members_counted", .gauge, "nodes", .voters,
            meaning:
                "Voters: members of which a majority must have a purge, as this node sees "
                + "them",
            advice:
                "More than are alive: some have not been removed with nuthatch members forget "
                + "yet."),
        MetricFamily(
            "nuthatch_joining", .gauge, "nodes", .joining,
            meaning: "Whether the node is looking for its cluster: 1 if so, else 0",
            advice:
                "nuthatch status names the seeds that do not reply, and why; if no other node "
                + "has a cluster, nuthatch members bootstrap forms one."),
        MetricFamily(
            "nuthatch_fenced", .gauge, "nodes", .fenced,
            meaning: "Whether the node is fenced, because it may lack purges: 1 if so, else 0",
            advice:
                "It revalidates each entry once per fence; nuthatch members names the members "
                + "that it does not reach."),
    ]
}
