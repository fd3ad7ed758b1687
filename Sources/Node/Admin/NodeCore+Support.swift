import Admin
import Cluster
import FoundationEssentials
import Glibc
import Ground
import Logging
import Origin
import Telemetry

/// All of a node at once, for whoever has to find out what is wrong with it.
extension NodeCore {
    /// Reads files; not for a loop.
    func supportSnapshot(for role: AdminRole) -> SupportDocument {
        let receipts = purges.recentPurges(100).compactMap { ReceiptDocument($0, at: self) }
        return SupportDocument(
            takenAt: CivilTime(milliseconds: SystemClock.wallMilliseconds()).isoText,
            process: .ofThisProcess(),
            status: status(for: role), statistics: statistics(),
            configuration: configurationDocument,
            logLevel: LogLevelDocument(logger.logLevel.rawValue), members: memberRows(),
            ring: ringDocument(),
            origins: exchange.statuses(now: SystemClock.now()).map(OriginDocument.init),
            purges: receipts, prefetches: prefetcher.documents(),
            metrics: String(
                decoding: MetricsExposition.render(snapshotWithMembers(), as: .text), as: UTF8.self)
        )
    }
}

extension SupportDocument.Process {
    fileprivate static func ofThisProcess() -> SupportDocument.Process {
        var process = SupportDocument.Process()
        process.id = getpid()
        process.processors = ProcessInfo.processInfo.activeProcessorCount
        if let kernel = text(of: "/proc/version") { process.system = kernel }
        if let status = text(of: "/proc/self/status") { process.parse(status: status) }
        let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        process.openDescriptors = descriptors?.count
        var limit = rlimit()
        if unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            process.descriptorsMax = Int(clamping: limit.rlim_cur)
        }
        var usage = rusage()
        if unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 {
            process.userMilliseconds = milliseconds(usage.ru_utime)
            process.systemMilliseconds = milliseconds(usage.ru_stime)
        }
        return process
    }

    private static func text(of path: String) -> String? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        let text = String(decoding: data, as: UTF8.self)
        return text.hasSuffix("\n") ? String(text.dropLast()) : text
    }

    private static func milliseconds(_ time: timeval) -> Int64 {
        Int64(time.tv_sec) * 1_000 + Int64(time.tv_usec) / 1_000
    }
}
