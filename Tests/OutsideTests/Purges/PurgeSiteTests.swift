import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Purges of a site's responses")
    struct PurgeSiteTests {
        private static let host = "a.example"

        /// Expects that each node serves this version in each language.
        private func expect(_ version: Int, _ languages: [String], of stage: ClusterStage) throws {
            for node in stage.nodes {
                for language in languages {
                    let fields = ["Accept-Language: \(language)"]
                    let response = try node.get("/it", host: Self.host, fields: fields)
                    #expect(response.text == "\(version) \(language)")
                }
            }
        }

        @Test(
            "A purge of the client's or the origin's URL covers all variants",
            arguments: [true, false])
        func variants(byOrigin: Bool) throws {
            let stage = try ClusterStage(2, site: Self.host)
            let version = LockedBox(1)
            stage.origin.on("/it") { request in
                .text(
                    "\(version.value) \(request.fields["Accept-Language"] ?? "any")",
                    fields: [lasting, "Vary: Accept-Language"])
            }
            try expect(1, ["de", "fr"], of: stage)
            version.value = 2
            let url = byOrigin ? stage.origin.url("/it") : "http://\(Self.host)/it"
            #expect(try stage.nodes[1].purge("{\"url\":\"\(url)\"}").isConfirmedByAll)
            try expect(2, ["fr", "de"], of: stage)
        }
    }
}
