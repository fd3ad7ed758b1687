import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Images are prefetched before clients request them")
    struct PrefetchTests {
        private static let fields = ["Cache-Control: max-age=1000"]

        private func begin(_ node: NodeProcess, _ body: [String: Any]) throws -> String {
            let json = try JSONSerialization.data(withJSONObject: body)
            let response = try node.connectAdmin().post(
                String(decoding: json, as: UTF8.self), to: "/admin/v1/prefetches")
            #expect(response.status == 202, "\(response)")
            return try #require(response["Location"])
        }

        /// Returns the document of a prefetch once it has ended.
        private func ended(_ node: NodeProcess, _ location: String) throws -> [String: Any] {
            let isOver = try Deadline.seconds(60).waitUntil {
                let state = try node.document(location)["state"] as? String
                return state != "running" && state != "reading"
            }
            try #require(isOver)
            return try node.document(location)
        }

        @Test(
            "A prefetched image is a hit after one origin fetch; a second prefetch fetches nothing"
        )
        func urls() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            let images = (1...12).map { TestImage.noise($0) }
            let paths = images.map { stage.origin.serve($0, fields: Self.fields) }
            let gone = "/gone.png"
            let urls = (paths + [gone]).map(stage.origin.url)
            let first = try ended(stage.node, begin(stage.node, ["urls": urls]))
            #expect(first["state"] as? String == "done" && first["urls_fetched"] as? Int == 12)
            #expect(first["urls_failed"] as? Int == 1 && first["urls_done"] as? Int == 13)
            #expect(first["body_bytes"] as? Int == images.map(\.bytes.count).reduce(0, +))
            let faults = try #require(first["faults"] as? [[String: Any]])
            #expect(faults.map { $0["url"] as? String } == [stage.origin.url(gone)])
            // Hit ratios exclude requests that no client has made.
            for outcome in ["hit", "disk", "miss", "peer"] {
                #expect(try stage.figure("nuthatch_requests_total{cache=\"\(outcome)\"}") == 0)
            }
            for (path, image) in zip(paths, images) {
                let response = try stage.get(path, expecting: image)
                #expect(response["Cache-Status"]?.contains("hit") == true, "\(response)")
                #expect(stage.fetches(path) == 1)
            }
            let second = try ended(stage.node, begin(stage.node, ["urls": Array(urls.dropLast())]))
            #expect(second["urls_held"] as? Int == 12 && second["urls_done"] as? Int == 12)
            #expect(paths.allSatisfy { stage.fetches($0) == 1 })
            let list = try stage.node.document("/admin/v1/prefetches")["prefetches"]
            #expect((list as? [Any])?.count == 2)
        }

        @Test("In a cluster each image is prefetched from its origin once, through any node")
        func cluster() throws {
            let stage = try ClusterStage(3)
            let images = (1...9).map { TestImage.noise($0) }
            let paths = images.map { stage.origin.serve($0, fields: Self.fields) }
            let urls = paths.map(stage.origin.url)
            for node in stage.nodes {
                let end = try ended(node, begin(node, ["urls": urls]))
                #expect(end["urls_failed"] as? Int == 0, "\(end)")
            }
            for (path, image) in zip(paths, images) {
                for node in stage.nodes {
                    let response = try node.get(
                        ImageRequestTarget.forURL(stage.origin.url(path)), expecting: image)
                    #expect(response.status == 200)
                }
                #expect(stage.origin.requests(path).count == 1)
            }
        }

        @Test("The images of a site's sitemap are prefetched, also where signatures are required")
        func sitemap() throws {
            let stage = try SignedStage()
            let host = "http://\(SignedStage.site)"
            stage.origin.on(
                "/map.xml",
                .text(
                    "<sitemapindex><sitemap><loc>\(host)/inner.xml</loc></sitemap></sitemapindex>",
                    contentType: "application/xml", fields: Self.fields))
            stage.origin.on(
                "/inner.xml",
                .text(
                    "<urlset><url><loc>\(host)/page</loc><image:image><image:loc>\(host)/1.png"
                        + "</image:loc></image:image></url></urlset>",
                    contentType: "application/xml", fields: Self.fields))
            let image = TestImage.noise(3)
            stage.origin.on("/1.png", OriginResponse(image, fields: Self.fields))
            let end = try ended(
                stage.node, begin(stage.node, ["sitemap": "\(host)/map.xml"]))
            #expect(end["state"] as? String == "done" && end["urls_fetched"] as? Int == 1, "\(end)")
            let path = stage.origin.serve(TestImage.noise(4), fields: Self.fields)
            let other = try ended(
                stage.node, begin(stage.node, ["urls": ["\(host)/1.png", stage.origin.url(path)]]))
            #expect(other["urls_held"] as? Int == 1 && other["urls_fetched"] as? Int == 1)
            #expect(stage.origin.requests("/1.png").count == 1)
            #expect(stage.origin.requests(path).count == 1)
            #expect(stage.origin.requests("/page").isEmpty)
        }

        @Test("A sitemap outside all sites is fetched from its origin, and an invalid one fails")
        func origins() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            let path = stage.origin.serve(TestImage.noise(1), fields: Self.fields)
            stage.origin.on("/map.txt", .text(stage.origin.url(path) + "\n"))
            stage.origin.on("/page.html", .text("<html></html>", contentType: "text/html"))
            let good = try ended(
                stage.node, begin(stage.node, ["sitemap": stage.origin.url("/map.txt")]))
            #expect(good["state"] as? String == "done" && good["urls_fetched"] as? Int == 1)
            #expect(stage.fetches(path) == 1)
            let bad = try ended(
                stage.node, begin(stage.node, ["sitemap": stage.origin.url("/page.html")]))
            #expect(bad["state"] as? String == "failed" && bad["urls_total"] as? Int == 0)
            // A busy origin is tried again.
            let url = stage.origin.url(path)
            let asked = LockedBox(0)
            stage.origin.on("/late.txt") { _ in
                let isFirst = asked.change { count in
                    count += 1
                    return count == 1
                }
                return isFirst
                    ? .text("busy", status: "503 Service Unavailable") : .text(url + "\n")
            }
            let late = try ended(
                stage.node, begin(stage.node, ["sitemap": stage.origin.url("/late.txt")]))
            #expect(late["state"] as? String == "done" && late["urls_held"] as? Int == 1)
            #expect(late["sitemaps_failed"] as? Int == 0)
        }

        @Test("A cancelled prefetch sends no further requests, and an unknown id is not found")
        func cancel() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            let gate = Gate()
            stage.origin.onAnyOtherPath { _ in
                OriginResponse(TestImage.noise(2), fields: Self.fields).delayingHead(.gate(gate))
            }
            let urls = (0..<40).map { stage.origin.url("/\($0).png") }
            let location = try begin(stage.node, ["urls": urls])
            expectSoon { stage.fetches("/3.png") == 1 }
            let response = try stage.node.connectAdmin().get(location, method: "DELETE")
            #expect(response.status == 202)
            gate.open()
            try expectSoon { try stage.node.document(location)["urls_fetched"] as? Int == 4 }
            #expect(stage.fetches("/4.png") == 0)
            #expect(try stage.node.document(location)["state"] as? String == "cancelled")
            for method in ["GET", "DELETE"] {
                let unknown = try stage.node.connectAdmin().get(
                    "/admin/v1/prefetches/none", method: method)
                #expect(unknown.status == 404)
            }
        }
    }
}
