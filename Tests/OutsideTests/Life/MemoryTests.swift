import Harness
import Testing

extension Outside {
    @Suite("Memory stays within its limit")
    struct MemoryTests {
        private static let limitMiB = 64

        /// The limit, plus 15 % overhead and 64 MiB for the program.
        private static let residentBytesMax = (limitMiB * 115 / 100 + 64) << 20

        private func expectWithin(
            _ node: NodeProcess, at location: SourceLocation = #_sourceLocation
        ) {
            let most = node.residentBytesMax
            #expect(
                most > 0 && most <= Self.residentBytesMax,
                "\(most >> 20) MiB of \(Self.residentBytesMax >> 20)", sourceLocation: location)
        }

        @Test("A large image evicts nothing of more value, and is served completely")
        func largeNewcomer() throws {
            let stage = try Stage("--memory-limit", "16MiB")
            let small = (0..<200).map {
                TestImage.generated(.jpeg, byteCount: 60_000 + $0, seed: UInt64(900 + $0))
            }
            for image in small { stage.origin.serve(image, fields: [lasting]) }
            for _ in 0..<3 {
                for image in small { _ = try stage.get("/" + image.name, expecting: image) }
            }
            let large = TestImage.generated(.bmp, byteCount: 8_000_000, seed: 899)
            let path = stage.origin.serve(large, fields: [lasting])
            for _ in 0..<2 { #expect(try stage.get(path, expecting: large).matches(large)) }
            #expect(stage.fetches(path) == 2)
            for image in small {
                let response = try stage.get("/" + image.name, expecting: image)
                #expect(response.matches(image) && response.detail == "memory", "\(response)")
            }
        }

        @Test("A thousand stalled readers of large images")
        func stalledReaders() throws {
            let stage = try Stage("--memory-limit", "\(Self.limitMiB)MiB")
            defer { withExtendedLifetime(stage) {} }
            let images = (0..<20).map {
                TestImage.generated(.bmp, byteCount: 8_000_000, seed: UInt64(140 + $0))
            }
            let paths = images.map { stage.origin.serve($0, fields: [lasting]) }
            let plans = (0..<1_000).map { index in
                SwarmClientPlan(
                    stage.target(paths[index % 20]), expecting: images[index % 20],
                    behaviour: .neverRead)
            }
            let stalled = ClientSwarm(port: stage.node.port, Array(plans.dropLast(20)))
            let patient = ClientSwarm(port: stage.node.port, plans.suffix(20))
            #expect(stalled.waitForConnections() && patient.waitForConnections())
            for path in paths { #expect(stage.origin.waitForRequests(1, path)) }
            for (path, image) in zip(paths, images) {
                let response = try stage.get(path, expecting: image)
                #expect(response.matches(image) || response.status == 503, "\(response)")
            }
            expectWithin(stage.node)
            patient.startReading()
            let responses = patient.responses()
            let wrong = zip(responses, images).filter {
                !$0.matches($1) && $0.isWhole && $0.status == 200
            }
            #expect(wrong.isEmpty, "\(wrong.count), such as \(wrong.prefix(3))")
            let endless = responses.filter { $0.ending == .timedOut }
            #expect(
                endless.isEmpty,
                "\(endless), \(String(describing: stage.node.metric("nuthatch_waiters")))")
            expectWithin(stage.node)
        }

        @Test("A thousand clients that request many small images and read none")
        func stalledPipelines() throws {
            // However long it takes until the last one stalls, the first is not disconnected.
            let stage = try Stage(
                "--memory-limit", "\(Self.limitMiB)MiB", "--send-timeout", "1h",
                "--idle-timeout", "1h", "--head-timeout", "1h")
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.png, byteCount: 15_000, seed: 139)
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path).matches(image))
            var plan = SwarmClientPlan(
                stage.target(path), expecting: image, behaviour: .neverRead)
            plan.request = Array(repeatElement(plan.request, count: 400).joined())
            let stalled = ClientSwarm(port: stage.node.port, count: 1_000, plan)
            #expect(stalled.waitForConnections())
            expectSoon(120) { stage.node.descriptorCount >= 1_000 }
            #expect(try stage.settledDescriptors() >= 1_000)
            #expect(try stage.get(path, seconds: 120).isHit)
            expectWithin(stage.node)
        }

        @Test("Ten times the limit of mixed sizes")
        func passingThrough() throws {
            let stage = try Stage("--memory-limit", "\(Self.limitMiB)MiB")
            defer { withExtendedLifetime(stage) {} }
            let sizes = [
                1_000, 5_000_000, 20_000, 70_000, 300_000, 10_000_000, 3_000, 130_000, 1_500_000,
            ]
            var passed = 0
            var seed: UInt64 = 1_000
            while passed < 10 * Self.limitMiB << 20 {
                let images = (0..<36).map { index in
                    TestImage.generated(
                        .webp, byteCount: sizes[index % sizes.count], seed: seed + UInt64(index))
                }
                seed += 36
                let plans = images.map { image in
                    let path = stage.origin.serve(image, fields: [lasting])
                    return SwarmClientPlan(stage.target(path), expecting: image)
                }
                let responses = ClientSwarm(port: stage.node.port, plans).responses()
                let isWhole = zip(responses, images).allSatisfy { $0.matches($1) }
                #expect(isWhole)
                guard isWhole else { return }
                passed += images.reduce(0) { $0 + $1.byteCount }
            }
            expectWithin(stage.node)
        }

        @Test("Stalled readers while ten times the limit passes")
        func both() throws {
            let stage = try Stage("--memory-limit", "\(Self.limitMiB)MiB")
            defer { withExtendedLifetime(stage) {} }
            let large = (0..<10).map {
                TestImage.generated(.bmp, byteCount: 5_000_000, seed: UInt64(180 + $0))
            }
            let plans = large.flatMap { image in
                let path = stage.origin.serve(image, fields: [lasting])
                let plan = SwarmClientPlan(stage.target(path), behaviour: .neverRead)
                return Array(repeating: plan, count: 100)
            }
            let swarm = ClientSwarm(port: stage.node.port, plans)
            #expect(swarm.waitForConnections())
            var seed: UInt64 = 5_000
            for _ in 0..<10 * Self.limitMiB {
                let image = TestImage.generated(.gif, byteCount: 1 << 20, seed: seed)
                seed += 1
                let path = stage.origin.serve(image, fields: [lasting])
                let response = try stage.get(path, expecting: image)
                guard response.matches(image) else {
                    Issue.record("\(response)")
                    break
                }
            }
            expectWithin(stage.node)
        }

        @Test("Frequently requested images survive a scan of images requested once")
        func scanResistance() throws {
            let stage = try Stage("--memory-limit", "\(Self.limitMiB)MiB")
            defer { withExtendedLifetime(stage) {} }
            let hot = TestImage.generated(.png, byteCount: 50_000, seed: 190)
            let path = stage.origin.serve(hot, fields: [lasting])
            for _ in 0..<10 { #expect(try stage.get(path).matches(hot)) }
            for seed in 0..<200 {
                let image = TestImage.generated(.gif, byteCount: 1 << 20, seed: UInt64(seed))
                let other = stage.origin.serve(image, fields: [lasting])
                #expect(try stage.get(other, expecting: image).matches(image))
                if seed % 10 == 0 { #expect(try stage.get(path).matches(hot)) }
            }
            #expect(stage.fetches(path) == 1)
        }
    }
}
