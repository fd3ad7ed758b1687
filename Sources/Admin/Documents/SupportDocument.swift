/// What helps whoever has to find out what is wrong with a node: `/admin/v1/support`.
///
/// All documents of one moment, and what the kernel says of the process. Secrets are in none of
/// them; names of hosts and the last purges are.
package struct SupportDocument: Sendable {
    /// What the kernel says; nil where it does not.
    package struct Process: Hashable, Sendable {
        /// Name and version of the kernel, and the machine's kind.
        package var system = ""
        package var processors = 0
        package var id: Int32 = 0
        package var residentBytes: UInt64?
        package var threads: UInt64?
        package var openDescriptors: Int?
        package var descriptorsMax: Int?
        package var userMilliseconds: Int64?
        package var systemMilliseconds: Int64?

        package init() {}

        /// Takes what is of interest from the lines of `/proc/self/status` (proc(5)).
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

    /// As in `2026-11-21T01:02:03Z`.
    package var takenAt: String
    package var process: Process
    package var status: StatusDocument
    package var statistics: StatisticsDocument
    package var configuration: ConfigurationDocument
    package var logLevel: LogLevelDocument
    package var members: [MemberDocument]
    package var ring: RingDocument
    package var origins: [OriginDocument]
    package var purges: [ReceiptDocument]
    package var prefetches: [PrefetchDocument]
    /// As Prometheus is told them.
    package var metrics: String

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
