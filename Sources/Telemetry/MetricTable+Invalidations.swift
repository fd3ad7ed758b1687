extension MetricFamily {
    /// The rows of invalidations.
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
