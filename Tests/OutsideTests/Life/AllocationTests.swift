import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A hit allocates nothing")
    struct AllocationTests {
        /// Allocations of the whole process per hit, beyond those of as much time with few hits.
        private static let allocationsPerHitMax = 0.01
        private static let hits = 20_000
        private static let warmUpHits = 2_000

        @Test("Hits on one connection", arguments: [1_000, 10_000, 100_000])
        func hits(byteCount: Int) throws {
            try hits(byteCount: byteCount, flags: [])
        }

        @Test("Hits that are noted for the disk")
        func touchedHits() throws {
            let folder = try TemporaryFolder()
            try hits(
                byteCount: 10_000,
                flags: ["--cache-dir", folder.path, "--touch-interval", "1s"])
        }

        private func hits(byteCount: Int, flags: [String]) throws {
            let counter = try AllocationCounter()
            let origin = try ScriptedOrigin()
            let image = TestImage.generated(.jpeg, byteCount: byteCount, seed: 160)
            let path = origin.serve(image, fields: [lasting], etag: "\"v1\"")
            // A look at the kernel's files once a second is no part of a hit.
            let node = try NodeProcess(
                flags + ["--memory-pressure", "off"], environment: counter.environment)
            #expect(counter.count > 0, "the node runs under the counter")
            let connection = try node.connect()
            let target = ImageTarget.of(origin.url(path))
            let request = HTTPConnection.request(target)
            for _ in 0..<Self.warmUpHits { try hit(connection, request, image) }
            let (begin, before) = (ContinuousClock.now, counter.count)
            for _ in 0..<Self.hits { try hit(connection, request, image) }
            let (end, between) = (ContinuousClock.now, counter.count)
            // Housekeeping goes by the clock, some of it only while there are hits: it allocates as
            // much in the same time, however many hits the machine has time for.
            var few = 0
            _ = try Deadline.seconds((end - begin) / Duration.seconds(1)).reached {
                try hit(connection, request, image)
                few += 1
                return false
            }
            let beyond = between - before - (counter.count - between)
            let perHit = Double(beyond) / Double(max(1, Self.hits - few))
            #expect(
                perHit <= Self.allocationsPerHitMax,
                "\(perHit) allocations per hit in \(end - begin), \(few) hits beside")
            #expect(origin.log.count == 1)
        }

        private func hit(
            _ connection: HTTPConnection, _ request: [UInt8], _ image: TestImage
        ) throws {
            try connection.socket.send(request)
            let response = connection.readResponse(expecting: image)
            try #require(response.brings(image), "\(response)")
        }
    }
}
