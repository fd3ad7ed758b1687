import Harness
import Testing

extension Outside {
    @Suite("A variant is selected by the request fields sent to the origin")
    struct SelectionTests {
        private let host = "a.example"

        /// Starts a node with one site and this setting, whose origin responds in the requested
        /// language.
        private func stage(_ setting: String) throws -> (SettingsStage, ScriptedOrigin) {
            let origin = try ScriptedOrigin()
            origin.on("/it") { request in
                .text(
                    request.fields["Accept-Language"] ?? "none",
                    fields: [lasting, "Vary: Accept-Language"])
            }
            let stage = try SettingsStage(
                "sites:\n  \(host):\n    origin: \(origin.url(""))\n    \(setting)\n")
            return (stage, origin)
        }

        private func get(_ stage: SettingsStage, _ fields: String...) throws -> Response {
            try stage.node.connect().get("/it", host: host, fields: fields)
        }

        @Test("A field named by Connection is not forwarded and selects no variant")
        func nominated() throws {
            let (stage, origin) = try stage("grace: 1h")
            for number in 0..<3 {
                let response = try get(stage, "Accept-Language: de")
                #expect(response.text == "de" && response.isHit == (number > 0), "\(response)")
                let plain = try get(stage, "Accept-Language: de", "Connection: Close")
                #expect(plain.text == "de" && plain.isHit, "\(plain)")
            }
            for number in 0..<2 {
                let hidden = try get(
                    stage, "Accept-Language: de", "Connection: close, Accept-Language")
                #expect(hidden.text == "none" && hidden.isHit == (number > 0), "\(hidden)")
            }
            #expect(origin.requests("/it").count == 2)
        }

        @Test(
            "A field that the operator removes or sets is the same for all clients",
            arguments: [
                ("remove-request-fields: [Accept-Language]", "none"),
                ("set-request-fields: {Accept-Language: en}", "en"),
                ("forward-fields: [Accept]", "none"),
            ])
        func decided(setting: String, text: String) throws {
            let (stage, origin) = try stage(setting)
            for language in ["de", "fr", "de"] {
                let response = try get(stage, "Accept-Language: \(language)")
                #expect(response.text == text, "\(response)")
            }
            #expect(origin.requests("/it").count == 1)
        }
    }
}
