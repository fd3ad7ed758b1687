/// The metrics of the disk tier; all values are zero without one.
enum DiskMetrics {
    /// The families in the order in which they are exposed.
    static let families = gauges + counters

    private static let gauges = [
        MetricFamily(
            "nuthatch_disk_up", .gauge, "tiers", .diskUp,
            meaning:
                "Whether the disk tier accepts entries: 1 if so, 0 while it has a fault or is "
                + "off",
            advice: "The log has the fault; the node keeps serving, and retries."),
        MetricFamily(
            "nuthatch_disk_limit_bytes", .gauge, "bytes", .diskLimitBytes,
            meaning: "The value of disk-limit",
            advice: "Change it with disk-limit."),
        MetricFamily(
            "nuthatch_disk_used_bytes", .gauge, "bytes", .diskUsedBytes,
            meaning: "Blocks allocated below the node's directory, measured at most a second ago",
            advice: "Never above the limit; reaching it after some time is normal."),
        MetricFamily(
            "nuthatch_disk_entries", .gauge, "entries", .diskEntries,
            meaning: "Entries on disk",
            advice: "Used bytes divided by entries is the mean size of an image."),
        MetricFamily(
            "nuthatch_disk_segments", .gauge, "segments", by: "state",
            [
                (.diskSegmentsFree, "free"), (.diskSegmentsOpen, "open"),
                (.diskSegmentsClosed, "closed"),
            ],
            meaning: "Segments of the disk tier: without entries, being written, and full",
            advice: "One or two free segments are normal once the disk is full."),
        MetricFamily(
            "nuthatch_disk_index_bytes", .gauge, "bytes", .diskIndexBytes,
            meaning: "Memory used by the index of the disk tier, in addition to memory-limit",
            advice: "Below 48 bytes per entry."),
        MetricFamily(
            "nuthatch_disk_queued_bytes", .gauge, "bytes", .diskQueuedBytes,
            meaning: "Entries waiting to be written",
            advice: "At disk-queue-limit further entries are dropped: the disk is too slow."),
    ]

    private static let counters = [
        MetricFamily(
            "nuthatch_disk_records_total", .counter, "records", by: "result",
            [
                (.diskRecordsAdmitted, "admitted"), (.diskRecordsReinserted, "reinserted"),
                (.diskRecordsQueueFull, "queue_full"), (.diskRecordsDropped, "dropped"),
                (.diskRecordsLost, "lost"),
            ],
            meaning: "Records of the disk tier, by result",
            advice:
                "queue_full: the disk is too slow; dropped: a fault, a purge, too large, or "
                + "the site's share; lost: see the log."),
        MetricFamily(
            "nuthatch_disk_admitted_bytes_total", .counter, "bytes", .diskAdmittedBytes,
            meaning: "Bytes of records of new responses",
            advice: "Written bytes divided by admitted bytes is the write amplification."),
        MetricFamily(
            "nuthatch_disk_written_bytes_total", .counter, "bytes", .diskWrittenBytes,
            meaning: "Bytes written to disk, for any reason",
            advice: "Written bytes divided by admitted bytes is the write amplification."),
        MetricFamily(
            "nuthatch_disk_read_bytes_total", .counter, "bytes", .diskReadBytes,
            meaning: "Bytes of records read for requests",
            advice: "Many bytes with few hits in memory: raise memory-limit."),
        MetricFamily(
            "nuthatch_disk_reads_total", .counter, "records", by: "from",
            [(.diskReadsFromPageCache, "page_cache"), (.diskReadsByThread, "thread")],
            meaning: "Records read, by whether the page cache held them",
            advice: "If thread dominates, give the machine more memory, or raise disk-threads."),
        MetricFamily(
            "nuthatch_disk_gone_total", .counter, "entries", by: "reason",
            [(.diskEvictions, "evicted"), (.diskExpirations, "expired")],
            meaning:
                "Entries removed from disk for capacity, or because they were not requested "
                + "for age-limit",
            advice: "Many evicted: raise disk-limit."),
        MetricFamily(
            "nuthatch_disk_reclaims_total", .counter, "segments", .diskReclaims,
            meaning: "Segments emptied to make room",
            advice: "Each rewrites those of its entries that are still requested."),
        MetricFamily(
            "nuthatch_journal_syncs_total", .counter, "syncs", .journalSyncs,
            meaning: "Syncs of the invalidation journal to disk",
            advice:
                "At most about 500 per second; each makes a batch of purges durable, or "
                + "starts a file."),
        MetricFamily(
            "nuthatch_disk_failures_total", .counter, "failures", .diskFailures,
            meaning:
                "Failures that stopped writing to the disk tier, and failed attempts to "
                + "resume",
            advice: "The log has the failed call and the reason."),
        MetricFamily(
            "nuthatch_touches_total", .counter, "entries", by: "result",
            [
                (.touchesApplied, "applied"), (.touchesMerged, "merged"),
                (.touchesDropped, "dropped"),
            ],
            meaning:
                "Batched accesses in memory: applied to the disk tier, merged into a waiting "
                + "one, or dropped",
            advice:
                "dropped: more entries were accessed at once than the queue holds, or the "
                + "disk is too slow."),
    ]
}
