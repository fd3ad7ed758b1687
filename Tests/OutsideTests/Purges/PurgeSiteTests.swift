import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Purges of what sites answer")
    struct PurgeSiteTests {
        private static let host = "a.example"

        /// Answers with the number of versions so far, which each POST makes one more of; by
        /// language if `varies`.
        private func stage(varies: Bool = false) throws -> (ClusterStage, LockedBox<Int>) {
            let stage = try ClusterStage(2, site: Self.host)
            let version = LockedBox(1)
            stage.origin.on("/it") { request in
                if request.method == "POST" {
                    version.change { $0 += 1 }
                    return .text("done")
                }
                let language = request.fields["Accept-Language"] ?? "any"
                return .text(
                    "\(version.value) \(language)",
                    fields: [lasting] + (varies ? ["Vary: Accept-Language"] : []))
            }
            return (stage, version)
        }

        private func text(
            _ stage: ClusterStage, _ index: Int, language: String? = nil
        ) throws -> String {
            let fields = language.map { ["Accept-Language: \($0)"] } ?? []
            let answer = try stage.nodes[index].get("/it", host: Self.host, fields: fields)
            return String(decoding: answer.body ?? [], as: UTF8.self)
        }

        @Test("What a request has changed through one node is not served by another either")
        func unsafe() throws {
            let (stage, _) = try stage()
            for index in 0..<2 { #expect(try text(stage, index) == "1 any") }
            let posted = try stage.nodes[0].connect().post("x", to: "/it", host: Self.host)
            #expect(posted.status == 200)
            #expect(try text(stage, 0) == "2 any")
            let isKnown = try Deadline.seconds(10).reached { try text(stage, 1) == "2 any" }
            #expect(isKnown)
        }

        @Test(
            "All variants go with their URL, the client's or the origin's",
            arguments: [true, false])
        func variants(byOrigin: Bool) throws {
            let (stage, version) = try stage(varies: true)
            for index in 0..<2 {
                for language in ["de", "fr"] {
                    #expect(try text(stage, index, language: language) == "1 \(language)")
                }
            }
            version.value = 2
            let url = byOrigin ? stage.origin.url("/it") : "http://\(Self.host)/it"
            #expect(try stage.nodes[1].purge("{\"url\":\"\(url)\"}").isConfirmedByAll)
            for index in 0..<2 {
                for language in ["fr", "de"] {
                    #expect(try text(stage, index, language: language) == "2 \(language)")
                }
            }
        }
    }
}
