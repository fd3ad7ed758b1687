extension MetricFamily {
    /// The rows of memory pressure.
    static let pressureFamilies = [
        MetricFamily(
            "nuthatch_memory_held_limit_bytes", .gauge, "bytes", .memoryEffectiveLimitBytes,
            meaning: "What of memory-limit is held now; less than that under memory pressure",
            advice: "If it stays below the limit, lower memory-limit or give the node memory."),
        MetricFamily(
            "nuthatch_memory_yields", .gauge, "nodes", .memoryUnderPressure,
            meaning: "Whether less than memory-limit is held: 1, or 0",
            advice: "The log says whose memory is short."),
        MetricFamily(
            "nuthatch_memory_headroom_bytes", .gauge, "bytes", .memoryHeadroomBytes,
            meaning:
                "What the nearest limit of container or machine leaves, page cache not counted",
            advice: "At 0 the kernel kills; an eighth of the limit is kept free where possible."),
        MetricFamily(
            "nuthatch_memory_stalled_ratio", .gauge, "ratio", divisor: 1_000,
            .memoryStalledPermille,
            meaning: "Part of the last 10 s in which everything waited for memory (PSI, full)",
            advice: "From 0.1 on memory is given up; the machine swaps or has no page cache left."),
        MetricFamily(
            "nuthatch_memory_shrinks_total", .counter, "shrinks", by: "reason",
            [(.memoryShrinksForHeadroom, "room"), (.memoryShrinksForStalls, "stall")],
            meaning: "Times that the limit held was lowered, by what asked for it",
            advice: "A steady rate means that something else takes memory again and again."),
    ]
}
