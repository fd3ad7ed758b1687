import Foundation
import Harness
import Testing

extension Outside {
    /// Runs schemathesis, an independent program, against the admin port's OpenAPI description:
    /// many requests that match the description and many that do not.
    @Suite("The admin port conforms to its OpenAPI description")
    struct DescriptionTests {
        /// Runs with the same seed send the same requests as long as the node's responses are the
        /// same.
        private static let seed = 9

        private static let python = PythonTool.having(
            "schemathesis==4.32.5", in: "schemathesis", modules: ["schemathesis"])

        /// Constraints that a schema cannot express.
        ///
        /// A text that is no URL (422), a duplicate value (400), a target or a body over the byte
        /// limit (413, 414), too many reports for one token (429).
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

        /// Runs schemathesis with the token of a role; its findings fail the test.
        private func campaign(as role: String, _ flags: [String]) throws {
            let python = try #require(
                Self.python, "schemathesis cannot be installed with python3 and pip")
            // A random prefetch must not reach any real host.
            let guarded = try GuardedNode("--allow-origin", "127.0.0.1:9")
            let folder = try TemporaryFolder()
            let file = try folder.write(Self.settings, to: "schemathesis.toml")
            let address = "http://127.0.0.1:\(guarded.node.adminPort)"
            // schemathesis stores its findings in the working directory.
            let result = try Program.run(
                try Program.find("env"),
                [
                    "-C", folder.path, python, "-m", "schemathesis.cli", "--config-file", file.path,
                    "run",
                    "\(address)/admin/v1/openapi.json", "--url", address,
                    "--header", "Authorization: Bearer \(GuardedNode.token(role))",
                    "--checks", "all", "--seed", "\(Self.seed)", "--generation-database", "none",
                    "--max-failures", "10", "--request-timeout", "20", "--no-color",
                    // A slow machine is not a failure.
                    "--suppress-health-check", "all",
                ] + flags, environment: ["HOME": folder.path], seconds: 240)
            // Failing requests of megabytes are included in the output.
            let said = String(decoding: result.output, as: UTF8.self)
                .split(separator: "\n", omittingEmptySubsequences: false)
                .map { $0.prefix(400) }.joined(separator: "\n")
            #expect(result.status == 0, "seed \(Self.seed)\n\(said)\n\(result.errors)")
            print("schemathesis as \(role), seed \(Self.seed):")
            print(said.suffix(600))
            #expect(guarded.node.isRunning)
            #expect(try guarded.node.connectAdmin().get("/healthz").status == 200)
        }

        @Test("A purge token gets described responses to any request")
        func purging() throws {
            // The event stream never ends, so its schema cannot be checked.
            try campaign(
                as: "purge",
                ["--exclude-operation-id", "watchStatistics", "--max-examples", "25"])
        }

        @Test("An admin token gets described responses on admin-only operations")
        func administration() throws {
            let names = ["drain", "undrain", "setLogLevel", "forgetMembers"]
            try campaign(
                as: "admin",
                names.flatMap { ["--include-operation-id", $0] } + ["--max-examples", "25"])
        }
    }
}
