import Foundation
import Glibc
import Synchronization

/// Writes 256 bytes to a file and syncs them, over and over, on a thread of its own.
final class SyncProbe: Sendable {
    private let path: String
    private let isOver = Atomic<Bool>(false)
    private let result = Mutex<Latencies?>(nil)

    private static let pauseMilliseconds: Int32 = 5

    init(in directory: URL) {
        path = directory.appendingPathComponent("synced").path
    }

    func start() {
        Thread.detachNewThread { [self] in
            var latencies = Latencies()
            let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            let bytes = [UInt8](repeating: 7, count: 256)
            while file >= 0, !isOver.load(ordering: .relaxed) {
                let start = nanoseconds()
                guard unsafe write(file, bytes, bytes.count) == bytes.count, fdatasync(file) == 0
                else { break }
                latencies.add(nanoseconds() - start)
                poll(nil, 0, Self.pauseMilliseconds)
            }
            if file >= 0 { close(file) }
            result.withLock { $0 = latencies }
        }
    }

    func stop() -> Latencies {
        isOver.store(true, ordering: .relaxed)
        while true {
            if let latencies = result.withLock({ $0 }) { return latencies }
            sched_yield()
        }
    }
}
