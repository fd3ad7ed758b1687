import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Images are handed off to their owners")
    struct HandoffTests {
        private func images(_ count: Int, seed: UInt64) -> [TestImage] {
            (0..<count).map {
                TestImage.generated(.webp, byteCount: 8_000 + 500 * $0, seed: seed + UInt64($0))
            }
        }

        /// Fetches each image through one of the nodes and returns the paths.
        private func fetchAll(_ images: [TestImage], on stage: ClusterStage) throws -> [String] {
            let paths = images.map { stage.origin.serve($0, fields: [lasting]) }
            for (number, path) in paths.enumerated() {
                let response = try stage.get(path, from: number % stage.nodes.count)
                #expect(response.matches(images[number]), "\(response)")
            }
            return paths
        }

        /// Expects each image from each of `nodes` without a further origin fetch.
        private func expectAll(
            _ images: [TestImage], _ paths: [String], from nodes: [NodeProcess],
            on stage: ClusterStage, at location: SourceLocation = #_sourceLocation
        ) throws {
            for (number, path) in paths.enumerated() {
                for node in nodes {
                    let response = try node.get(stage.target(path), expecting: images[number])
                    #expect(
                        response.matches(images[number]), "\(response)", sourceLocation: location)
                }
            }
            let again = paths.filter { stage.fetches($0) != 1 }
            #expect(
                again.isEmpty, "fetched again: \(again.count) of \(paths.count)",
                sourceLocation: location)
        }

        /// Expects each image from the first two nodes once they are proven current without the
        /// third; until then they are fenced for a moment and request the origin.
        private func expectOfRest(
            _ images: [TestImage], _ paths: [String], on stage: ClusterStage,
            at location: SourceLocation = #_sourceLocation
        ) throws {
            let rest = Array(stage.nodes.prefix(2))
            try stage.settle(rest, at: location)
            try expectAll(images, paths, from: rest, on: stage, at: location)
        }

        /// True once the nodes hold `count` images in total and no handoff is pending.
        private func reaches(_ count: Int, _ nodes: [NodeProcess]) -> Bool {
            Deadline.seconds(60).waitUntil {
                nodes.reduce(0) { $0 + $1.diskEntries } == Double(count)
                    && nodes.allSatisfy { $0.offersPending == 0 }
            }
        }

        private func drain(_ node: NodeProcess) throws {
            let response = try HTTPConnection(port: node.adminPort)
                .get("/admin/v1/drain?stop=true", method: "POST")
            #expect(response.status == 202, "\(response)")
        }

        @Test(
            "Each fetched image is kept by two nodes, so the death of one causes no further fetch"
        )
        func death() throws {
            let stage = try ClusterStage(3, "--disk-limit", "64MiB")
            let images = images(60, seed: 800)
            let paths = try fetchAll(images, on: stage)
            #expect(reaches(120, stage.nodes), "\(stage.nodes.map(\.diskEntries))")
            stage.nodes[2].kill()
            // Immediately, before any node has detected the failure.
            let rest = Array(stage.nodes.prefix(2))
            try expectAll(images, paths, from: rest, on: stage)
            // Each of the remaining two keeps everything.
            #expect(reaches(120, rest), "\(rest.map(\.diskEntries))")
        }

        @Test("A joining node receives the entries it owns, and none it already has")
        func join() throws {
            let stage = try ClusterStage(3, "--disk-limit", "64MiB")
            let images = images(60, seed: 900)
            let paths = try fetchAll(images, on: stage)
            #expect(reaches(120, stage.nodes))
            let fourth = try stage.join()
            try stage.settle(stage.nodes)
            expectSoon(60, "\(stage.nodes.map(\.diskEntries))") {
                stage.nodes.allSatisfy { $0.offersPending == 0 } && fourth.diskEntries >= 15
            }
            try expectAll(images, paths, from: stage.nodes, on: stage)
            let before = fourth.diskEntries
            let written = fourth.metric("nuthatch_offers_received_total{outcome=\"taken\"}")
            #expect(written == before)
            // After a restart it still has everything that it owns.
            try stage.restart(3)
            try stage.settle(stage.nodes)
            #expect(reaches(Int(stage.nodes.reduce(0) { $0 + $1.diskEntries }), stage.nodes))
            let taken = stage.nodes[3].metric("nuthatch_offers_received_total{outcome=\"taken\"}")
            #expect(taken == 0)
            try expectAll(images, paths, from: stage.nodes, on: stage)
        }

        @Test("A draining node hands off the only copies, and then stops")
        func drained() throws {
            let stage = try ClusterStage(3, "--disk-limit", "64MiB", "--replicas", "1")
            let images = images(60, seed: 1_000)
            let paths = try fetchAll(images, on: stage)
            #expect(reaches(60, stage.nodes))
            #expect(stage.nodes[2].diskEntries > 5)
            try drain(stage.nodes[2])
            #expect(stage.nodes[2].waitForExit() == 0, "\(stage.nodes[2].output)")
            #expect(stage.nodes[2].lineCount(containing: "handoff complete") == 1)
            try expectOfRest(images, paths, on: stage)
        }

        @Test("A node without a disk hands off its memory entries when it drains")
        func drainedFromMemory() throws {
            let stage = try ClusterStage(3, keepsOnDisk: false, "--replicas", "1")
            let images = images(40, seed: 1_100)
            let paths = try fetchAll(images, on: stage)
            try drain(stage.nodes[1])
            #expect(stage.nodes[1].waitForExit() == 0, "\(stage.nodes[1].output)")
            let rest = [stage.nodes[0], stage.nodes[2]]
            // Until they are proven current without it, they are fenced and request the origin.
            try stage.settle(rest)
            try expectAll(images, paths, from: rest, on: stage)
        }

        @Test("A node configured for it hands off before it stops; a single node stops at once")
        func stopped() throws {
            let stage = try ClusterStage(
                3, "--disk-limit", "64MiB", "--replicas", "1", "--hand-over-timeout", "30s")
            let images = images(40, seed: 1_200)
            let paths = try fetchAll(images, on: stage)
            #expect(reaches(40, stage.nodes))
            for index in [2, 1] {
                #expect(stage.nodes[index].stop() == 0, "\(stage.nodes[index].output)")
            }
            expectSoon {
                !stage.nodes[0].isFenced && stage.nodes[0].metric("nuthatch_members_counted") == 1
            }
            try expectAll(images, paths, from: [stage.nodes[0]], on: stage)
            #expect(stage.nodes[0].stop() == 0)
        }

        @Test("A node that was away while an image changed does not bring back the old version")
        func older() throws {
            let stage = try ClusterStage(2, "--disk-limit", "64MiB")
            let old = TestImage.generated(.png, byteCount: 20_000, seed: 1_310)
            let new = TestImage.generated(.png, byteCount: 21_000, seed: 1_311)
            let path = stage.origin.serve(old, fields: ["Cache-Control: max-age=1"])
            #expect(try stage.get(path, from: 0).matches(old))
            #expect(reaches(2, stage.nodes), "\(stage.nodes.map(\.diskEntries))")
            stage.nodes[1].kill()
            stage.origin.on(path, OriginResponse(new, fields: [lasting]))
            try expectSoon(20) { try stage.get(path, from: 0).matches(new) }
            let fetches = stage.fetches(path)
            try stage.restart(1)
            try stage.settle(stage.nodes)
            expectSoon {
                stage.nodes.allSatisfy {
                    ($0.metric("nuthatch_offers_total{outcome=\"kept\"}") ?? 0) >= 1
                        && $0.metric("nuthatch_offers_pending{state=\"open\"}") == 0
                }
            }
            for index in [0, 1, 0, 1] { #expect(try stage.get(path, from: index).matches(new)) }
            #expect(stage.fetches(path) <= fetches + 1)
        }

        @Test("An owner's older copy is replaced by a newly fetched version")
        func newer() throws {
            let stage = try ClusterStage(2, "--disk-limit", "64MiB")
            let old = TestImage.generated(.png, byteCount: 20_000, seed: 1_300)
            let new = TestImage.generated(.png, byteCount: 21_000, seed: 1_301)
            let path = stage.origin.serve(old, fields: ["Cache-Control: max-age=1"])
            #expect(try stage.get(path, from: 0).matches(old))
            #expect(reaches(2, stage.nodes), "\(stage.nodes.map(\.diskEntries))")
            stage.origin.on(path, OriginResponse(new, fields: [lasting]))
            try expectSoon(20) { try stage.get(path, from: 0).matches(new) }
            let fetches = stage.fetches(path)
            // The owner that did not fetch it has it too: it is requested alone.
            expectSoon {
                stage.nodes.reduce(0) { sum, node in
                    sum + (node.metric("nuthatch_offers_total{outcome=\"kept\"}") ?? 0)
                } >= 2
            }
            for index in 0..<2 {
                stage.nodes[1 - index].kill()
                #expect(try stage.get(path, from: index, expecting: new).matches(new))
                try stage.restart(1 - index)
                try stage.settle(stage.nodes)
            }
            #expect(stage.fetches(path) == fetches)
        }
    }
}
