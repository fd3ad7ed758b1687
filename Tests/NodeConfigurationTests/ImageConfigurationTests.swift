import Ground
import HTTPRules
import NodeConfiguration
import Telemetry
import Testing

@Suite("Image settings of origins in the file")
struct ImageConfigurationTests {
    @Test("The listing is read as the same settings")
    func listing() throws {
        let file = """
            images:
              grace: 7d
              memory-share: 25%
              disk-share: 50%
              cluster: off
              origins:
                "*.a.example": {client-ttl: 60s, negative-ttl: {404: 1m}}
                b.example:8443: {grace: 1h, set-request-fields: {X-Key: {file: /run/key}}}
            """
        let given = try resolve(file: file)
        #expect(try resolve(file: given.listing.joined(separator: "\n")).images == given.images)
        #expect(given.listing.contains { $0.contains("origins: ") && $0.contains("8443") })
    }

    @Test("Settings that an origin lacks are inherited from all images")
    func inherited() throws {
        let block = try resolve(
            file: "images: {grace: 7d, client-ttl: 1m, origins: {a.example: {client-ttl: 2m}}}\n"
        ).images
        #expect(block.all.settings.clientTTL == .seconds(60))
        let own = try #require(block.origins.first)
        #expect(own.pattern.matches(host: "a.example", port: 443) && block.origins.count == 1)
        #expect(own.settings.settings.clientTTL == .seconds(120))
        #expect(own.settings.settings.grace == .seconds(7 * 86_400))
    }

    @Test(
        "Every error names its origin and what is allowed",
        arguments: [
            ("grase: 1h", "images: \"grase\" (from n.yaml, line 2) is not a setting of images; "),
            ("host: client", "images: \"host\" (from n.yaml, line 2) is not a setting of images"),
            (
                "set-request-fields: {X-Key: a}",
                "images: \"set-request-fields\" (from n.yaml, line 2) would be sent to any origin"
            ),
            (
                "origins: {'a b': {grace: 1h}}",
                "images: \"a b\" (from n.yaml, line 2) is not an origin pattern; allowed: HOST"
            ),
            (
                "origins: {a.example: {memory-share: 5%}}",
                "images from a.example: \"memory-share\" (from n.yaml, line 2) is not a setting"
            ),
            (
                "origins: {a.example: {grace: soon}}",
                "images from a.example: grace (from n.yaml, line 2): \"soon\" is invalid"
            ),
            (
                "origins: {a.example: {set-request-fields: {accept-encoding: gzip}}}",
                "images from a.example: set-request-fields (from n.yaml, line 2): \"Accept-Encoding"
            ),
            (
                "origins: {a.example: http://o.example}",
                "images from a.example: \"origin\" (from n.yaml, line 2) is not a setting"
            ),
            (
                "origins: {a.example: {negative-ttl: {500: 1s}}}",
                "images from a.example: negative-ttl (from n.yaml, line 2): \"500\" is invalid"
            ),
            (
                "origins: {a.example: {grace: 1h}, A.example: {grace: 2h}}",
                "images from A.example (from n.yaml, line 2): \"A.example\" is given twice"
            ),
            (
                "origins: [a.example]",
                "n.yaml, line 2: origins of images is not a mapping of patterns to settings"
            ),
            ("object-limit: 65MiB", "images: object-limit is 65MiB; allowed: at most setting"),
            (
                "origins: {a.example: {object-limit: 65MiB}}",
                "images from a.example: object-limit is 65MiB; allowed: at most setting"
            ),
        ])
    func refused(line: String, start: String) {
        let found = faults("images:\n  \(line)\n")
        #expect(found.count == 1 && found[0].contains(start), "\(found)")
    }
}
