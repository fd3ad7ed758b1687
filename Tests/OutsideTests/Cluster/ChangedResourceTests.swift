import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Unsafe requests in a cluster")
    struct ChangedResourceTests {
        private static let host = "a.example"

        private func page(_ node: NodeProcess, _ method: String = "GET") throws -> Response {
            try node.get("/page", method: method, host: Self.host)
        }

        @Test("A change through one node invalidates the copies of others, even with a full log")
        func logIsFull() throws {
            let disk = try HungDisk()
            let stage = try ClusterStage(1, site: Self.host)
            let version = LockedBox(1)
            stage.origin.on("/page") { request in
                if request.method == "DELETE" {
                    version.value = 2
                    return .text("done")
                }
                return .text("version \(version.value)", fields: [lasting])
            }
            let site = ["--site", "\(Self.host)=\(stage.origin.url(""))"]
            let node = try NodeProcess(
                stage.clusterFlags(peerPort: ReservedPort.forProcess()) + site
                    + ["--cache-dir", stage.cache(1).path, "--disk-limit", "64MiB"],
                environment: disk.environment)
            let nodes = [stage.nodes[0], node]
            expectSoon { nodes.allSatisfy { $0.isCurrent(among: 2) } }
            for node in nodes + nodes { #expect(try page(node).text == "version 1") }

            try disk.hang(reads: false)
            let tags = (0..<100).map { "{\"tag\":\"\($0)-\(String(repeating: "t", count: 200))\"}" }
            let body = "{\"wait\":\"none\",\"targets\":[\(tags.joined(separator: ","))]}"
            try expectSoon {
                try node.connectAdmin().post(body, to: "/admin/v1/purges").status == 503
            }
            #expect(try page(node, "DELETE").status == 200)
            expectSoon { node.lineCount(containing: "a change could not be sent") == 1 }
            let again = try page(node)
            #expect(again.text == "version 2", "\(again)")
            try disk.resume()
            try expectSoon { try page(stage.nodes[0]).text == "version 2" }
            #expect(node.lineCount(containing: "a change could not be sent") == 1)
        }
    }
}
