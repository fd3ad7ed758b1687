/// A bundle for diagnosing a node: `/admin/v1/support`.
///
/// All documents as of one moment, and what the kernel reports about the process. It contains no
/// secrets, but host names and the last purges.
package struct SupportDocument: AdminDocument {
    /// The kernel's figures for the process; `nil` where unavailable.
    package struct Process: AdminDocument {
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

        /// The members.
        package static let fields: [Field] = [
            .required("system", \.system),
            .required("processors", \.processors),
            .required("id", \.id),
            .nullable("resident_bytes", \.residentBytes),
            .nullable("threads", \.threads),
            .nullable("open_descriptors", \.openDescriptors),
            .nullable("descriptors_limit", \.descriptorsMax),
            .nullable("user_cpu_ms", \.userMilliseconds),
            .nullable("system_cpu_ms", \.systemMilliseconds),
        ]
    }

    /// The time of the snapshot, as in `2026-11-21T01:02:03Z`.
    package var takenAt = ""
    /// The kernel's figures for the process.
    package var process = Process()
    /// The node's state.
    package var status = StatusDocument()
    /// The counters since the start.
    package var statistics = StatisticsDocument()
    /// The settings in force.
    package var configuration = ConfigurationDocument()
    /// The log level in force.
    package var logLevel = LogLevelDocument()
    /// The members of the cluster.
    package var members = DocumentList<MemberDocument>()
    /// The shares of the ring.
    package var ring = RingDocument()
    /// The origins.
    package var origins = DocumentList<OriginDocument>()
    /// The receipts of the last purges.
    package var purges = DocumentList<ReceiptDocument>()
    /// The prefetch jobs.
    package var prefetches = DocumentList<PrefetchDocument>()
    /// The metrics in the Prometheus text format.
    package var metrics = ""

    /// Creates an empty document.
    package init() {}

    /// The members.
    package static let fields: [Field] = [
        .required("taken_at", \.takenAt),
        .required("process", \.process),
        .required("status", \.status),
        .required("statistics", \.statistics),
        .required("configuration", \.configuration),
        .required("log_level", \.logLevel),
        .required("members", \.members),
        .required("ring", \.ring),
        .required("origins", \.origins),
        .required("purges", \.purges),
        .required("prefetches", \.prefetches),
        .required("metrics", \.metrics, "The metrics in the text format of /metrics"),
    ]
}
