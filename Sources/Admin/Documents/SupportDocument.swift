/// A bundle for diagnosing a node: `/admin/v1/support`.
///
/// All documents as of one moment, and what the kernel reports about the process. It contains no
/// secrets, but host names and the last purges.
package struct SupportDocument: Sendable {
    /// The kernel's figures for the process; `nil` where unavailable.
    package struct Process: Hashable, Sendable {
        /// The kernel's name and version, and the machine's architecture.
        package var system = ""
        /// The number of processors.
        package var processors = 0
        /// The process id.
        package var id: Int32 = 0
        /// The physical memory in use (`VmRSS`), in bytes.
        package var residentBytes: UInt64?
        /// The number of threads.
        package var threads: UInt64?
        /// The number of open file descriptors.
        package var openDescriptors: Int?
        /// The limit on open file descriptors.
        package var descriptorsMax: Int?
        /// The CPU time in user mode, in milliseconds.
        package var userMilliseconds: Int64?
        /// The CPU time in kernel mode, in milliseconds.
        package var systemMilliseconds: Int64?

        /// Creates an empty set of figures.
        package init() {}

        /// Reads the memory in use and the thread count from `/proc/self/status` (proc(5)).
        package mutating func parse(status: String) {
            for line in status.split(separator: "\n") {
                let words = line.split { $0 == "\t" || $0 == " " }
                guard words.count > 1, let number = UInt64(words[1]) else { continue }
                switch words[0] {
                case "VmRSS:": residentBytes = number << 10
                case "Threads:": threads = number
                default: break
                }
            }
        }
    }

    /// The time of the snapshot, as in `2026-11-21T01:02:03Z`.
    package var takenAt: String
    /// The kernel's figures for the process.
    package var process: Process
    /// The node's state.
    package var status: StatusDocument
    /// The counters since the start.
    package var statistics: StatisticsDocument
    /// The settings in force.
    package var configuration: ConfigurationDocument
    /// The log level in force.
    package var logLevel: LogLevelDocument
    /// The members of the cluster.
    package var members: [MemberDocument]
    /// The shares of the ring.
    package var ring: RingDocument
    /// The origins.
    package var origins: [OriginDocument]
    /// The receipts of the last purges.
    package var purges: [ReceiptDocument]
    /// The prefetch jobs.
    package var prefetches: [PrefetchDocument]
    /// The metrics in the Prometheus text format.
    package var metrics: String

    /// Creates the document from its parts.
    package init(
        takenAt: String, process: Process, status: StatusDocument, statistics: StatisticsDocument,
        configuration: ConfigurationDocument, logLevel: LogLevelDocument, members: [MemberDocument],
        ring: RingDocument, origins: [OriginDocument], purges: [ReceiptDocument],
        prefetches: [PrefetchDocument], metrics: String
    ) {
        self.takenAt = takenAt
        self.process = process
        self.status = status
        self.statistics = statistics
        self.configuration = configuration
        self.logLevel = logLevel
        self.members = members
        self.ring = ring
        self.origins = origins
        self.purges = purges
        self.prefetches = prefetches
        self.metrics = metrics
    }

    /// The document as JSON.
    package var json: JSON {
        [
            "taken_at": .text(takenAt), "process": process.json, "status": status.json,
            "statistics": statistics.json, "configuration": configuration.json,
            "log_level": logLevel.json, "members": MemberDocument.json(members), "ring": ring.json,
            "origins": OriginDocument.json(origins), "purges": ReceiptDocument.json(purges),
            "prefetches": PrefetchDocument.json(prefetches), "metrics": .text(metrics),
        ]
    }

    static let schema = JSONSchema.object(
        .required("taken_at", JSONSchema.string), .required("process", Process.schema),
        .required("status", StatusDocument.schema),
        .required("statistics", StatisticsDocument.schema),
        .required("configuration", ConfigurationDocument.schema),
        .required("log_level", LogLevelDocument.schema),
        .required("members", MemberDocument.schema),
        .required("ring", RingDocument.schema), .required("origins", OriginDocument.schema),
        .required("purges", ReceiptDocument.listSchema),
        .required("prefetches", PrefetchDocument.listSchema),
        .required("metrics", JSONSchema.string, "As /metrics has them"))
}

extension SupportDocument.Process {
    fileprivate var json: JSON {
        [
            "system": .text(system), "processors": JSON(processors), "id": JSON(id),
            "resident_bytes": JSON(residentBytes), "threads": JSON(threads),
            "open_descriptors": JSON(openDescriptors), "descriptors_limit": JSON(descriptorsMax),
            "user_cpu_ms": JSON(userMilliseconds), "system_cpu_ms": JSON(systemMilliseconds),
        ]
    }

    fileprivate static let schema = JSONSchema.object(
        .required("system", JSONSchema.string), .required("processors", JSONSchema.count),
        .required("id", JSONSchema.count),
        .required("resident_bytes", JSONSchema.nullable(JSONSchema.count)),
        .required("threads", JSONSchema.nullable(JSONSchema.count)),
        .required("open_descriptors", JSONSchema.nullable(JSONSchema.count)),
        .required("descriptors_limit", JSONSchema.nullable(JSONSchema.count)),
        .required("user_cpu_ms", JSONSchema.nullable(JSONSchema.count)),
        .required("system_cpu_ms", JSONSchema.nullable(JSONSchema.count)))
}
