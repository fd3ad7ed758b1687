import Harness
import Testing

extension Outside {
    @Suite("Well-formed requests that are refused")
    struct RefusalTests {
        @Test("Unknown paths are not found, and the connection stays open")
        func unknownPaths() throws {
            let node = try NodeProcess()
            let connection = try node.connect()
            for path in ["/", "/v1", "/v1/images?url=x", "/v1/image/x", "/healthz/", "/V1/image"] {
                expectProblem(try connection.get(path), 404, path)
            }
            #expect(try connection.get("/healthz").status == 200)
        }

        @Test(
            "Other methods get 405 with an Allow field",
            arguments: ["POST", "PUT", "DELETE", "PATCH"])
        func methods(_ method: String) throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(TestImage.generated(.png, byteCount: 500, seed: 1))
            let response = try stage.get(path, method: method, fields: ["Content-Length: 0"])
            expectProblem(response, 405, method)
            #expect(Set(response.fields.members("Allow")).isSuperset(of: ["GET", "HEAD"]))
            #expect(stage.origin.log.isEmpty)
        }

        @Test("A missing or invalid URL is a bad request")
        func urls() throws {
            let node = try NodeProcess()
            let connection = try node.connect()
            for query in ["", "?", "?url", "?url=", "?URL=http%3A%2F%2Fa%2F", "?other=1"] {
                expectProblem(try connection.get("/v1/image" + query), 400, query)
            }
            for value in ["%zz", "http%3A%2F%2Fa%2F%", "http%3A%2F%2Fa%2F%0"] {
                expectProblem(try connection.get("/v1/image?url=" + value), 400, value)
            }
            for url in [
                "a", "/a", "//a/b", "ftp://a/b", "file:///etc/passwd", "http:/a/b", "http:a/b",
                "http://", "http:///a", "http://user@a/", "http://user:word@a/", "http://a:0/",
                "http://a:65536/", "http://a:x/", "http://a b/", "http://a/\u{1}",
                "http://a/\r\nX: y",
                "http://[::1/", "http://[zz]/", "http://[fe80::1%25eth0]/", "http://a..b/",
                "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/",
                "http://a/%zz", "javascript:alert(1)", "data:image/png;base64,AAAA",
            ] {
                expectProblem(try connection.get(ImageRequestTarget.forURL(url)), 400, url)
            }
        }

        @Test("Origins that are not allowed are forbidden and get no request")
        func allowOrigin() throws {
            let origin = try ScriptedOrigin()
            let image = TestImage.generated(.png, byteCount: 500, seed: 2)
            let path = origin.serve(image)
            let strict = try NodeProcess(["--allow-origin", "images.example"])
            expectProblem(try strict.get(ImageRequestTarget.forURL(origin.url(path))), 403)
            expectProblem(
                try strict.get(ImageRequestTarget.forURL("http://other.example/a.png")), 403)
            expectProblem(
                try strict.get(
                    ImageRequestTarget.forURL("http://images.example.other.example/a.png")), 403)
            #expect(origin.log.isEmpty)
            let open = try NodeProcess(["--allow-origin", "127.0.0.1"])
            #expect(try open.get(ImageRequestTarget.forURL(origin.url(path))).matches(image))
        }

        @Test("Private addresses in every spelling are forbidden by default and get no request")
        func privateAddresses() throws {
            let origin = try ScriptedOrigin()
            let node = try NodeProcess(allowsLoopback: false)
            let port = origin.port
            for host in [
                "127.0.0.1", "127.9.9.9", "localhost", "0.0.0.0", "[::1]", "[::]",
                "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]",
                "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254",
                "224.0.0.1", "255.255.255.255", "[fe80::1]", "[fc00::1]", "[ff02::1]",
            ] {
                let response = try node.get(
                    ImageRequestTarget.forURL("http://\(host):\(port)/a.png"))
                // The response does not disclose that a name resolves to a private address.
                expectProblem(response, host == "localhost" ? 502 : 403, host)
            }
            #expect(origin.connectionsOpened == 0)
        }
    }
}
