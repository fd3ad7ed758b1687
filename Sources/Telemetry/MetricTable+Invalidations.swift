extension MetricFamily {
    /// The rows of invalidations.
    static let invalidationFamilies = [
        MetricFamily(
            "nuthatch_purges_issued_total", .counter, "purges", by: "mode",
            [(.purgesHard, "hard"), (.purgesSoft, "soft")],
            meaning: "Purges that clients have asked this node for, repeats left out",
            advice: "Each reaches every node; its receipt says how far it is."),
        MetricFamily(
            "nuthatch_invalidations_applied_total", .counter, "invalidations",
            .invalidationsApplied,
            meaning: "Records of the invalidation log that this node has applied since its start",
            advice: "Rises alike on all nodes; one that stays behind cannot be reached."),
        MetricFamily(
            "nuthatch_invalidation_records", .gauge, "records", .invalidationRecords,
            meaning: "Records of the invalidation log that are held for nodes that lack them",
            advice: "A node that was away for longer revalidates everything older once."),
    ]
}
