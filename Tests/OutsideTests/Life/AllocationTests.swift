import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A hit allocates nothing")
    struct AllocationTests {
        /// Allocations of the whole process per hit, beyond those of the same time with few hits.
        private static let allocationsPerHitMax = 0.01
        private static let hits = 20_000
        private static let warmUpHits = 2_000

        @Test("Hits on one connection", arguments: [1_000, 10_000, 100_000])
        func hits(byteCount: Int) throws {
            try hits(byteCount: byteCount, flags: [])
        }

        @Test("Hits with touches for the disk")
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
            // Reading the kernel's files once a second is not part of a hit.
            let node = try NodeProcess(
                flags + ["--memory-pressure", "off"], environment: counter.environment)
            #expect(counter.count > 0, "the node runs under the counter")
            let connection = try node.connect()
            let target = ImageRequestTarget.forURL(origin.url(path))
            let request = HTTPConnection.request(target)
            for _ in 0..<Self.warmUpHits { try hit(connection, request, image) }
            let (begin, before) = (ContinuousClock.now, counter.count)
            for _ in 0..<Self.hits { try hit(connection, request, image) }
            let (end, between) = (ContinuousClock.now, counter.count)
            // Housekeeping is timed, and some of it runs only while there are hits: it allocates
            // the same in the same time, whatever the number of hits.
            var few = 0
            _ = try Deadline.seconds((end - begin) / Duration.seconds(1)).waitUntil {
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

        // MARK: Hits with a limited number of allocations

        /// Allocations of nghttp2 and OpenSSL are included.
        @Test(
            "Hits over HTTP/2 and TLS",
            arguments: [
                Carriage(scheme: "http", isHTTP1: false, allocationsMax: 7),
                Carriage(scheme: "https", isHTTP1: false, allocationsMax: 14),
                Carriage(scheme: "https", isHTTP1: true, allocationsMax: 8),
            ])
        func carried(over carriage: Carriage) throws {
            let counter = try AllocationCounter()
            let stage = try SecureStage(
                "--memory-pressure", "off", environment: counter.environment)
            let path = stage.origin.serve(image, fields: [lasting])
            let port = carriage.scheme == "https" ? stage.node.securePort : stage.node.port
            let target = ImageRequestTarget.forURL(stage.origin.url(path))
            try expect(
                atMost: carriage.allocationsMax, per: 20_000,
                of: ["\(carriage.scheme)://127.0.0.1:\(port)\(target)"],
                isHTTP1: carriage.isHTTP1, counter)
        }

        struct Carriage: CustomTestStringConvertible {
            let scheme: String
            let isHTTP1: Bool
            let allocationsMax: Double

            var testDescription: String { "\(scheme), HTTP/\(isHTTP1 ? "1.1" : "2")" }
        }

        @Test("Hits on disk")
        func onDisk() throws {
            let counter = try AllocationCounter()
            let folder = try TemporaryFolder()
            let origin = try ScriptedOrigin()
            origin.serveNumberedImages()
            let node = try NodeProcess(
                ["--memory-pressure", "off", "--memory-entries", "1", "--cache-dir", folder.path],
                environment: counter.environment)
            try expect(
                atMost: 12, per: 5_000, of: numbered(origin, as: node), isHTTP1: true, counter)
            let served = node.metric("nuthatch_requests_total{cache=\"disk\"}")
            #expect(try #require(served) > 6_000)
        }

        @Test("Hits at another node")
        func remote() throws {
            let counter = try AllocationCounter()
            let stage = try ClusterStage(
                2, keepsOnDisk: false, "--memory-pressure", "off",
                ownFlags: [0: ["--memory-entries", "1"]], environment: counter.environment)
            stage.origin.serveNumberedImages()
            // Half of them belong to node 1, which has space for them.
            try expect(
                atMost: 90, per: 5_000, of: numbered(stage.origin, as: stage.nodes[0]),
                isHTTP1: true, counter)
            let served = stage.nodes[0].metric("nuthatch_requests_total{cache=\"peer\"}")
            #expect(try #require(served) > 2_000)
        }

        private func numbered(_ origin: ScriptedOrigin, as node: NodeProcess) -> [String] {
            (0..<20).map { number in
                "http://127.0.0.1:\(node.port)"
                    + ImageRequestTarget.forURL(origin.url(NumberedImages.path(number)))
            }
        }

        /// Sends `count` requests, in turn to each of `addresses`.
        private func expect(
            atMost allocationsMax: Double, per count: Int, of addresses: [String], isHTTP1: Bool,
            _ counter: AllocationCounter
        ) throws {
            func ask(_ count: Int) throws {
                let flags = ["--requests=\(count)"] + (isHTTP1 ? ["--h1"] : [])
                let result = try Program.run(
                    try Program.find("h2load"), flags + addresses, seconds: 120)
                let said = String(decoding: result.output, as: UTF8.self)
                try #require(said.contains("status codes: \(count) 2xx"), "\(said)")
            }
            try ask(2_000)
            let before = counter.count
            try ask(count)
            let perHit = Double(counter.count - before) / Double(count)
            #expect(perHit <= allocationsMax, "\(perHit) allocations per hit")
        }

        private let image = TestImage.generated(.jpeg, byteCount: 10_000, seed: 161)

        private func hit(
            _ connection: HTTPConnection, _ request: [UInt8], _ image: TestImage
        ) throws {
            try connection.socket.send(request)
            let response = connection.readResponse(expecting: image)
            try #require(response.matches(image), "\(response)")
        }
    }
}
