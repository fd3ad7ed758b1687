import Foundation
import Harness
import Testing

extension Outside {
    /// What the admin port says of itself, taken at its word by a program that nobody here wrote:
    /// requests that fit its description, and requests that do not, many of each.
    @Suite("The admin port against its own description")
    struct DescriptionTests {
        /// Runs of the same seed send the same requests, as far as the node's answers are the same.
        private static let seed = 9

        private static let python = PythonTool.having(
            "schemathesis==4.32.5", in: "schemathesis", modules: ["schemathesis"])

        /// What no schema can say.
        ///
        /// A text that is no URL (422), the same thing said twice (400), a target or a body that is
        /// too long as bytes (413, 414), reports for one token without end (429).
        private static let settings = """
            [checks.positive_data_acceptance]
            expected-statuses = ["2xx", 401, 403, 404, 409, 413, 414, 422, 429, 503]

            [checks.negative_data_rejection]
            expected-statuses = [400, 401, 403, 404, 405, 413, 414, 422, 429]

            [[operations]]
            include-operation-id = "issuePurge"
            checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 403, 409, 413, 422]

            # A node that stops answers nobody.
            [[operations]]
            include-operation-id = "drain"
            parameters = { stop = "false" }

            """

        /// Runs schemathesis with the token of a role; what it found is the test's failure.
        private func campaign(as role: String, _ flags: [String]) throws {
            let python = try #require(
                Self.python, "schemathesis cannot be installed with python3 and pip")
            // What is prefetched by chance is nobody's.
            let guarded = try GuardedNode("--allow-origin", "127.0.0.1:9")
            let folder = try TemporaryFolder()
            let file = try folder.write(Self.settings, to: "schemathesis.toml")
            let address = "http://127.0.0.1:\(guarded.node.adminPort)"
            // It keeps what it has found where it is started.
            let result = try Program.run(
                try Program.find("env"),
                [
                    "-C", folder.path, python, "-m", "schemathesis.cli", "--config-file", file.path,
                    "run",
                    "\(address)/admin/v1/openapi.json", "--url", address,
                    "--header", "Authorization: Bearer \(GuardedNode.token(role))",
                    "--checks", "all", "--seed", "\(Self.seed)", "--generation-database", "none",
                    "--max-failures", "10", "--request-timeout", "20", "--no-color",
                    // That a machine is slow is not what is looked for.
                    "--suppress-health-check", "all",
                ] + flags, environment: ["HOME": folder.path], seconds: 240)
            // Requests of megabytes are shown, too.
            let said = String(decoding: result.output, as: UTF8.self)
                .split(separator: "\n", omittingEmptySubsequences: false)
                .map { $0.prefix(400) }.joined(separator: "\n")
            #expect(result.status == 0, "seed \(Self.seed)\n\(said)\n\(result.errors)")
            print("schemathesis as \(role), seed \(Self.seed):")
            print(said.suffix(600))
            #expect(guarded.node.isRunning)
            #expect(try guarded.node.connectAdmin().get("/healthz").status == 200)
        }

        @Test("Who may purge is answered as described, whatever they send")
        func purging() throws {
            // Events never end, and nothing can be held against a schema before they do.
            try campaign(
                as: "purge",
                ["--exclude-operation-id", "watchStatistics", "--max-examples", "25"])
        }

        @Test("Who may do everything is, where only they may")
        func administration() throws {
            let names = ["drain", "undrain", "setLogLevel", "forgetMembers"]
            try campaign(
                as: "admin",
                names.flatMap { ["--include-operation-id", $0] } + ["--max-examples", "25"])
        }
    }
}
