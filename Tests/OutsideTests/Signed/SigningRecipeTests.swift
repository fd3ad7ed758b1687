import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Recipes for signing in other languages")
    struct SigningRecipeTests {
        /// A program and its recipe.
        enum Recipe: String, CaseIterable, CustomTestStringConvertible {
            case python3 = "sign.py"
            case node = "sign.mjs"

            var isThere: Bool { (try? Program.find("\(self)")) != nil }

            var testDescription: String { rawValue }

            func run(_ arguments: [String]) throws -> ProgramResult {
                let root = URL(fileURLWithPath: #filePath)
                    .deletingLastPathComponent().appendingPathComponent("../../..")
                let script = root.appendingPathComponent("deploy/recipes/\(rawValue)").path
                return try Program.run(
                    try Program.find("\(self)"), [script] + arguments,
                    environment: ["NUTHATCH_SIGNING_KEY": SignedStage.old])
            }

            func sign(
                _ kind: String, _ place: String, _ url: String, _ expiry: String? = nil
            ) throws -> String {
                let result = try run([kind, place, url] + (expiry.map { [$0] } ?? []))
                try #require(result.status == 0, "\(url): \(result.errors)")
                return String(decoding: result.output, as: UTF8.self)
                    .trimmingCharacters(in: .newlines)
            }
        }

        /// The recipes whose programs are installed; ``installed(recipe:)`` reports the others.
        private static let known: [Recipe] = Recipe.allCases.filter(\.isThere)

        @Test("Each recipe's program is installed", arguments: Recipe.allCases)
        func installed(recipe: Recipe) {
            if !recipe.isThere {
                print("\(recipe) is not installed; \(recipe.rawValue) is not tested")
            }
        }

        private static let urls = [
            "http://a.example", "HTTP://A.Example.:80/?", "https://a.example:443/b/../c/./d/..",
            "http://a.example:8080/%7e%2f%2e%2E/x", "http://a.example/..//../b?c=d&e=|\"<>#f",
            "http://a.example/ü %41?q=%7c%c3%bc+ü", "http://[2001:DB8:0:0::1]:80/a",
            "http://192.0.2.1/a'b(c)*!?/?[]{}", "http://a_b.example:00080//a//",
            "http://a.example/a;b=c,d@e:f$g&h?\\^`", "http://a.example/%2525?%26",
        ]

        @Test("A recipe signs like nuthatch, for every URL", arguments: known, urls)
        func same(recipe: Recipe, url: String) throws {
            let folder = try TemporaryFolder()
            let keys = try folder.write(SignedStage.old, to: "keys")
            for expiry in [nil, "4102444800"] {
                let result = try NodeProcess.run(
                    ["sign", "--signing-key-file", keys.path, "--base", "http://n"]
                        + (expiry.map { ["--expires-at", $0] } ?? []) + [url])
                try #require(result.status == 0, "\(result.errors)")
                let expected = String(decoding: result.output, as: UTF8.self)
                    .trimmingCharacters(in: .newlines)
                let made = try recipe.sign("image", "http://n", url, expiry)
                #expect(
                    made.removingPercentEncoding == expected.removingPercentEncoding, "\(url)")
            }
        }

        @Test(
            "A recipe refuses what nuthatch refuses", arguments: known,
            ["ftp://a/", "http://", "http://a/%zz", "http://u@a/", "http://a\n/", "http://ü/"])
        func refused(recipe: Recipe, url: String) throws {
            #expect(try recipe.run(["image", "http://n", url]).status == 1)
        }

        @Test("The node accepts a recipe's signature, and serves the same entry", arguments: known)
        func accepted(recipe: Recipe) throws {
            let stage = try SignedStage()
            let image = TestImage.generated(.png, byteCount: 5_000, seed: 721)
            let path = stage.origin.serve(image, fields: [lasting])
            let url = stage.origin.url(path)
            let base = "http://127.0.0.1:\(stage.node.port)"
            for signed in [
                try recipe.sign("image", base, url),
                try recipe.sign("image", base, url + "#x", "4102444800"),
            ] {
                let target = String(signed.dropFirst(base.count))
                #expect(try stage.node.get(target, expecting: image).matches(image), "\(signed)")
            }
            let late = try recipe.sign("image", base, url, "1000000000")
            expectProblem(
                try stage.node.get(String(late.dropFirst(base.count))), 410, named: "url-expired")
            #expect(stage.origin.requests(path).count == 1)

            stage.origin.on("/it", .text("it", fields: [lasting]))
            let site = "http://\(SignedStage.site)"
            for target in ["/it", "/it?a=%20b"] {
                for expiry in [nil, "4102444800"] {
                    let signed = try recipe.sign("site", SignedStage.site, site + target, expiry)
                    let asked = String(signed.dropFirst(site.count))
                    #expect(try stage.getSite(asked).text == "it", "\(signed)")
                }
            }
        }
    }
}
