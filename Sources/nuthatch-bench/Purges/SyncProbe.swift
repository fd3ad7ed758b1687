import Foundation
import Glibc

extension Sampler {
    private static let pauseMilliseconds: Int32 = 5

    /// Writes 256 bytes to a file and syncs them, over and over.
    static func measuringSyncs(in directory: URL) -> Sampler {
        let path = directory.appendingPathComponent("synced").path
        return Sampler { isOver in
            var latencies = Latencies()
            let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            let bytes = [UInt8](repeating: 7, count: 256)
            while file >= 0, !isOver() {
                let start = nanoseconds()
                guard unsafe write(file, bytes, bytes.count) == bytes.count, fdatasync(file) == 0
                else { break }
                latencies.add(nanoseconds() - start)
                poll(nil, 0, Sampler.pauseMilliseconds)
            }
            if file >= 0 { close(file) }
            return latencies
        }
    }
}
