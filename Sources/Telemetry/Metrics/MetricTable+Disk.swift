extension MetricFamily {
    /// The families of the disk tier; all values are zero without one.
    static let diskFamilies = diskGauges + diskCounters

    private static let diskGauges = [
        MetricFamily(
            "nuthatch_disk_up", .gauge, "tiers", .diskUp,
            meaning: "Whether the disk cache takes images: 1, or 0 while it has a fault or is off",
            advice: "The log says what the fault is; the node goes on, and tries again by itself."),
        MetricFamily(
            "nuthatch_disk_limit_bytes", .gauge, "bytes", .diskLimitBytes,
            meaning: "What disk-limit says",
            advice: "Change it with disk-limit."),
        MetricFamily(
            "nuthatch_disk_used_bytes", .gauge, "bytes", .diskUsedBytes,
            meaning: "Blocks allocated below the node's directory, at most a second ago",
            advice: "Never above the limit; near it after a while is ordinary."),
        MetricFamily(
            "nuthatch_disk_entries", .gauge, "entries", .diskEntries,
            meaning: "Entries on disk",
            advice: "Used bytes by entries is the mean size of an image."),
        MetricFamily(
            "nuthatch_disk_segments", .gauge, "segments", by: "state",
            [
                (.diskSegmentsFree, "free"), (.diskSegmentsOpen, "open"),
                (.diskSegmentsClosed, "closed"),
            ],
            meaning: "Segments of the disk cache: without entries, being filled, and full",
            advice: "One or two free ones once the disk has filled are ordinary."),
        MetricFamily(
            "nuthatch_disk_index_bytes", .gauge, "bytes", .diskIndexBytes,
            meaning: "Memory that the index of the disk cache takes, beside memory-limit",
            advice: "Below 48 bytes an entry."),
        MetricFamily(
            "nuthatch_disk_queued_bytes", .gauge, "bytes", .diskQueuedBytes,
            meaning: "Images that wait to be written",
            advice: "At disk-queue-limit further ones are dropped: the disk is too slow."),
    ]

    private static let diskCounters = [
        MetricFamily(
            "nuthatch_disk_records_total", .counter, "records", by: "result",
            [
                (.diskRecordsAdmitted, "admitted"), (.diskRecordsReinserted, "reinserted"),
                (.diskRecordsQueueFull, "queue_full"), (.diskRecordsDropped, "dropped"),
                (.diskRecordsLost, "lost"),
            ],
            meaning: "Records of the disk cache by what became of them",
            advice:
                "queue_full: the disk is too slow; dropped: a fault, a purge, too large, or a "
                + "site's share; lost: see the log."),
        MetricFamily(
            "nuthatch_disk_admitted_bytes_total", .counter, "bytes", .diskAdmittedBytes,
            meaning: "Bytes of records of new answers",
            advice: "Written by admitted bytes is the write amplification."),
        MetricFamily(
            "nuthatch_disk_written_bytes_total", .counter, "bytes", .diskWrittenBytes,
            meaning: "Bytes written to disk, for whatever reason",
            advice: "Written by admitted bytes is the write amplification."),
        MetricFamily(
            "nuthatch_disk_read_bytes_total", .counter, "bytes", .diskReadBytes,
            meaning: "Bytes of records read for requests",
            advice: "Many bytes with few hits in memory ask for a larger memory-limit."),
        MetricFamily(
            "nuthatch_disk_reads_total", .counter, "records", by: "from",
            [(.diskReadsFromPageCache, "page_cache"), (.diskReadsByThread, "thread")],
            meaning: "Records read, by whether the page cache held them",
            advice: "If thread dominates, give the machine memory or the disk more disk-threads."),
        MetricFamily(
            "nuthatch_disk_gone_total", .counter, "entries", by: "reason",
            [(.diskEvictions, "evicted"), (.diskExpirations, "expired")],
            meaning: "Entries given up for want of room, or because nobody asked for them",
            advice: "If many are evicted, raise disk-limit; expired is age-limit."),
        MetricFamily(
            "nuthatch_disk_reclaims_total", .counter, "segments", .diskReclaims,
            meaning: "Segments emptied to make room",
            advice: "Each writes again what of it is still asked for."),
        MetricFamily(
            "nuthatch_journal_syncs_total", .counter, "syncs", .journalSyncs,
            meaning: "Times that the record of invalidations was synced to the disk",
            advice:
                "At most some 500 a second; each makes a batch of purges durable, or begins a file."
        ),
        MetricFamily(
            "nuthatch_disk_failures_total", .counter, "failures", .diskFailures,
            meaning:
                "Times that the disk cache had to stop writing, and attempts to go on that failed",
            advice: "The log says which call failed and why."),
        MetricFamily(
            "nuthatch_touches_total", .counter, "entries", by: "result",
            [
                (.touchesApplied, "applied"), (.touchesMerged, "merged"),
                (.touchesDropped, "dropped"),
            ],
            meaning:
                "Batched uses in memory: that the disk cache was told of, that were merged into "
                + "one that waited, and that were dropped",
            advice: "dropped: more images were used at once than wait, or the disk is too slow."),
    ]
}
