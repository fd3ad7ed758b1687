import Harness
import Testing

extension Outside {
    @Suite("Limits on the variants of one URL")
    struct VariantLimitTests {
        private static let dropped = "nuthatch_variants_dropped_total"

        /// Starts a site whose responses at `/it` vary by Foo.
        private func stage(
            _ flags: String..., size: Int = 100, keepsDisk: Bool = false
        ) throws -> SiteStage {
            let stage = try SiteStage(more: flags, keepsDisk: keepsDisk)
            stage.origin.on("/it") { request in
                let name = request.fields["Foo"] ?? "nobody"
                let text = "of \(name) " + String(repeating: "x", count: size)
                return .text(text, fields: [lasting, "Vary: Foo"])
            }
            stage.origin.on("/other", .text("other", fields: [lasting]))
            return stage
        }

        private func get(_ stage: SiteStage, _ name: String) throws -> Response {
            let response = try stage.get("/it", fields: ["Foo: \(name)"])
            #expect(response.text.hasPrefix("of \(name) "), "\(response)")
            return response
        }

        @Test("Of many variants few are kept, and those in use stay")
        func number() throws {
            let stage = try stage("--variants-limit", "4")
            for number in 0..<6 { #expect(try get(stage, "used").isHit == (number > 0)) }
            for number in 0..<20 { #expect(try !get(stage, "made-up-\(number)").isHit) }
            expectSoon { stage.node.metric(Self.dropped) == 17 }
            #expect(try get(stage, "used").isHit && get(stage, "made-up-19").isHit)
            #expect(try !get(stage, "made-up-0").isHit)
            // Four variants and their Vary record.
            #expect(stage.node.metric("nuthatch_memory_entries").map { $0 <= 5 } == true)
        }

        @Test("Variants are evicted from disk too, and the count survives a restart")
        func disk() throws {
            let stage = try stage("--variants-limit", "4", keepsDisk: true)
            for _ in 0..<6 { _ = try get(stage, "used") }
            for number in 0..<10 {
                _ = try get(stage, "made-up-\(number)")
                try stage.settle()
            }
            try stage.settle(entries: 5)
            try stage.restart(inOrder: true)
            #expect(try get(stage, "made-up-9")["Cache-Status"]?.contains("hit") == true)
            for number in 10..<14 {
                _ = try get(stage, "made-up-\(number)")
                try stage.settle()
            }
            try stage.settle(entries: 5)
        }

        @Test("Large variants take no more than their share of memory, and nothing from other URLs")
        func bytes() throws {
            let stage = try stage("--memory-limit", "16MiB", size: 300_000)
            #expect(try stage.get("/other").text == "other")
            for number in 0..<60 { _ = try get(stage, "\(number)") }
            expectSoon { (stage.node.metric(Self.dropped) ?? 0) >= 55 }
            #expect(try stage.get("/other").isHit)
            #expect(stage.node.metric("nuthatch_evictions_total{reason=\"room\"}") == 0)
        }
    }
}
