import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Metrics are valid for independent parsers of their formats")
    struct MetricsTests {
        private static let openMetrics = "Accept: application/openmetrics-text; version=1.0.0"
        private static let hasPromtool = (try? Program.find("promtool")) != nil

        /// Starts a cluster member that has served a site and images, with hits and errors.
        private func stage() throws -> ClusterStage {
            let stage = try ClusterStage(2, site: "a.example")
            let image = TestImage.noise(7)
            let path = stage.origin.serve(image, fields: [lasting])
            let target = ImageRequestTarget.forURL(stage.origin.url(path))
            stage.origin.on("/gone", .text("no", status: "404 Not Found"))
            for node in stage.nodes {
                for _ in 0..<2 {
                    _ = try node.get(target)
                    _ = try node.get(path, host: "a.example")
                    _ = try node.get("/gone", host: "a.example")
                }
                _ = try node.get(ImageRequestTarget.forURL("http://127.0.0.1:1/refused"))
            }
            _ = try stage.nodes[0].purge("{\"tag\":\"a\"}", id: "one")
            return stage
        }

        private func promtool(_ arguments: String, reading text: String) throws -> ProgramResult {
            let folder = try TemporaryFolder()
            try folder.write(text, to: "in")
            let command = "cd '\(folder.path)' && promtool \(arguments) < in"
            return try Program.run("/bin/sh", ["-c", command])
        }

        @Test("promtool finds no fault in the text format", .enabled(if: hasPromtool))
        func text() throws {
            let stage = try stage()
            let response = try stage.nodes[0].connectAdmin().get("/metrics")
            #expect(response["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
            let result = try promtool("check metrics", reading: response.text)
            #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
            #expect(result.output.isEmpty)
            // A check that promtool has parsed the whole text.
            let without = response.text.replacing("# HELP nuthatch_fenced ", with: "# HELP other ")
            let faulty = try promtool("check metrics", reading: without)
            #expect(faulty.status != 0 && faulty.errors.contains("nuthatch_fenced"))
        }

        @Test("promtool accepts the OpenMetrics format", .enabled(if: hasPromtool))
        func openMetrics() throws {
            let stage = try stage()
            let response = try stage.nodes[0].connectAdmin().get(
                "/metrics", fields: [Self.openMetrics])
            #expect(
                response["Content-Type"]
                    == "application/openmetrics-text; version=1.0.0; charset=utf-8")
            // promtool converts a page to a time series database, which requires timestamps.
            let timed = response.text.split(separator: "\n").map { line in
                line.hasPrefix("#") ? line + "\n" : line + " 1700000000\n"
            }
            let command = "tsdb create-blocks-from openmetrics in out"
            let result = try promtool(command, reading: timed.joined())
            #expect(result.status == 0, "\(result.errors)")
            let cut = try promtool(command, reading: timed.dropLast().joined())
            #expect(cut.status != 0)
        }

        @Test("The format follows Accept, and the response has a matching Vary")
        func negotiation() throws {
            let node = try NodeProcess()
            let text = try node.connectAdmin().get("/metrics", fields: ["Accept: text/plain"])
            let open = try node.connectAdmin().get("/metrics", fields: [Self.openMetrics])
            let junk = try node.connectAdmin().get("/metrics", fields: ["Accept: ;;;q=9,/"])
            #expect(text["Vary"] == "Accept" && open["Vary"] == "Accept")
            #expect(open.text.hasSuffix("# EOF\n") && !text.text.contains("# EOF"))
            #expect(junk.status == 200 && junk["Content-Type"] == text["Content-Type"])
            func series(_ page: Response) -> [Substring] {
                page.text.replacing(".0\"", with: "\"").split(separator: "\n")
                    .filter { !$0.hasPrefix("#") }.map { $0.prefix { $0 != " " } }
            }
            #expect(series(text) == series(open))
        }

        @Test("A site's metrics count responses by tier")
        func tiers() throws {
            let stage = try SiteStage(keepsDisk: true)
            let image = TestImage.generated(.jpeg, byteCount: 10_000, seed: 191)
            let path = stage.origin.serve(image, fields: [lasting])
            for _ in 0..<3 { #expect(try stage.get(path).matches(image)) }
            try stage.settle(entries: 1)
            try stage.restart(inOrder: true)
            for _ in 0..<3 { #expect(try stage.get(path).matches(image)) }
            let figure = { (name: String, cache: String) in
                stage.node.metric("nuthatch_site_\(name){site=\"a.example\",cache=\"\(cache)\"}")
            }
            #expect(figure("requests_total", "disk") == 1)
            #expect(figure("requests_total", "hit") == 2)
            #expect(figure("requests_total", "miss") == 0)
            #expect(figure("body_bytes_total", "disk") == 10_000)
            #expect(figure("body_bytes_total", "hit") == 20_000)
            #expect(stage.node.metric("nuthatch_disk_segments{state=\"closed\"}") == 1)
        }

        @Test("Fetches are counted by outcome, and errors by the side that caused them")
        func outcomes() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on("/broken", .text("no", status: "500 Internal Server Error"))
            stage.origin.on("/gone", .text("no", status: "404 Not Found"))
            _ = try stage.get("/broken")
            _ = try stage.get("/gone")
            _ = try stage.node.get(ImageRequestTarget.forURL("http://127.0.0.1:1/refused"))
            let connection = try stage.node.connect()
            try connection.socket.send(Array("GET / HTTP/1.1\r\nBad Header\r\n\r\n".utf8))
            #expect(connection.readResponse().status == 400)
            let figure = { (series: String) in stage.node.metric("nuthatch_\(series)") }
            #expect(figure("origin_answers_total{status=\"5xx\"}") == 1)
            #expect(figure("origin_answers_total{status=\"4xx\"}") == 1)
            #expect(figure("origin_failures_total{reason=\"connect\"}") == 1)
            #expect(figure("origin_fetches_total{result=\"failed\"}") == 1)
            #expect(figure("errors_total{side=\"origin\"}") == 2)
            #expect(figure("errors_total{side=\"client\"}") == 1)
            #expect(figure("errors_total{side=\"disk\"}") == 0)
            let parts = ["bodies", "overhead", "fetches", "pinned"].map {
                figure("memory_part_bytes{part=\"\($0)\"}") ?? -1
            }
            #expect(parts.reduce(0, +) == figure("memory_used_bytes"), "\(parts)")
        }

        @Test("Client aborts and server-side truncations are counted separately")
        func unfinished() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            // More than the socket buffers hold.
            let image = TestImage.generated(.jpeg, byteCount: 40_000_000, seed: 192)
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path).matches(image))
            do {
                let connection = try stage.node.connect()
                try connection.socket.send(HTTPConnection.request(stage.target(path)))
                expectSoon(20) { stage.node.metric("nuthatch_requests_total{cache=\"hit\"}") == 1 }
                withExtendedLifetime(connection) {}
            }
            let series = "nuthatch_answers_unfinished_total{side=\"client\"}"
            expectSoon(20) { stage.node.metric(series) == 1 }
            #expect(stage.node.metric("nuthatch_answers_unfinished_total{side=\"node\"}") == 0)
        }

        @Test("Members gossip, and the lag of each member is reported")
        func members() throws {
            let stage = try stage()
            let node = stage.nodes[0]
            func figure(_ series: String) -> Double { node.metric("nuthatch_\(series)") ?? -1 }
            expectSoon(20) {
                figure("gossip_sent_total{kind=\"ping\"}") > 0
                    && figure("gossip_received_total{kind=\"ack\"}") > 0
            }
            #expect(figure("peer_handshakes_total{outcome=\"ok\"}") >= 1)
            #expect(figure("member_changes_total{state=\"alive\"}") >= 1)
            func lags() throws -> [Substring] {
                try node.connectAdmin().get("/metrics").text.split(separator: "\n")
                    .filter { $0.hasPrefix("nuthatch_member_lag_records{member=") }
            }
            #expect(try lags().count == 1)
            try expectSoon {
                try lags().allSatisfy { $0.hasSuffix("} 0") } && figure("receipts_pending") == 0
            }
        }
    }
}
