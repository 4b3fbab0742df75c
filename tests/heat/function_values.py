"""Calls of functions, and their values in Heat 27.0.1, which each of them was compared with.

`REFUSED` is a call that Heat refuses. `test_functions` reads this table; so can a script in Heat's
own environment, for there is nothing of this project in it.
"""

REFUSED = object()

PARAMETERS = """
name: shop
size: 3
none: null
port: 80.5
flag: true
empty: ''
zones: [az1, az2]
flavors: {web: m1.small, db: {big: m1.xlarge}, '1': one}
"""

VALUES = {
    "wallaby": [
        ("{get_param: name}", "shop"),
        ("{get_param: [name]}", "shop"),
        ("{get_param: flavors}", {"web": "m1.small", "db": {"big": "m1.xlarge"}, "1": "one"}),
        ("{get_param: [flavors, db, big]}", "m1.xlarge"),
        ("{get_param: [zones, 1]}", "az2"),
        ("{get_param: [zones, '0']}", "az1"),
        ("{get_param: [zones, -1]}", "az2"),
        ("{get_param: [zones, true]}", "az2"),
        ("{get_param: [zones, 2]}", ""),
        ("{get_param: [zones, 1.0]}", ""),
        ("{get_param: [zones, one]}", ""),
        ("{get_param: [flavors, app]}", ""),
        ("{get_param: [flavors, 1]}", ""),
        ("{get_param: [flavors, '1']}", "one"),
        ("{get_param: [flavors, null]}", ""),
        ("{get_param: [name, 0]}", "s"),
        ("{get_param: [name, -1]}", "p"),
        ("{get_param: [name, 9]}", ""),
        ("{get_param: [name, first]}", ""),
        ("{get_param: [size, 0]}", ""),
        ("{get_param: [flavors, web, 0, 0]}", "m"),
        ("{get_param: []}", REFUSED),
        ("{get_param: {a: b}}", REFUSED),
        ("{get_param: nmae}", REFUSED),
        ("{str_replace: {template: 'a-N-b', params: {N: {get_param: name}}}}", "a-shop-b"),
        ("{str_replace: {template: 'aab ab', params: {a: b, ab: x}}}", "bx x"),
        ("{str_replace: {template: 'abcd', params: {bc: B, abc: A, cd: C}}}", "Ad"),
        (
            "{str_replace: {template: 'n s t f', params: {n: null, s: 3, t: true, f: 1.0}}}",
            " 3 True 1.0",
        ),
        ("{str_replace: {template: z, params: {z: {get_param: zones}}}}", '["az1", "az2"]'),
        ("{str_replace: {template: z, params: {z: [{b: 1, a: é}]}}}", '[{"a": "\\u00e9", "b": 1}]'),
        ("{str_replace: {template: z, params: {z: []}}}", "[]"),
        ("{str_replace: {template: x, params: {z: y}}}", "x"),
        ("{str_replace: {template: x, params: {}}}", "x"),
        ("{str_replace: {template: x, params: {x: a}, more: b}}", "a"),
        ("{str_replace: {template: 3, params: {x: a}}}", REFUSED),
        ("{str_replace: {template: a}}", REFUSED),
        ("{str_replace: {template: a, params: [b]}}", REFUSED),
        ("{str_replace: {template: [a], params: {}}}", REFUSED),
        ("{str_replace: {template: a, params: {'': b}}}", REFUSED),
        ("{str_replace_strict: {template: 'a b', params: {a: 1, b: ''}}}", "1 "),
        ("{str_replace_strict: {template: 'a b', params: {c: 1}}}", REFUSED),
        ("{str_replace_strict: {template: 'ab', params: {ab: x, a: y}}}", REFUSED),
        ("{str_replace_vstrict: {template: 'a b', params: {a: 1, b: false}}}", "1 False"),
        ("{str_replace_vstrict: {template: 'a b', params: {a: 1, b: ''}}}", REFUSED),
        ("{str_replace_vstrict: {template: 'a b', params: {a: 1, b: null}}}", REFUSED),
        ("{str_replace_vstrict: {template: 'a b', params: {a: 1, b: []}}}", REFUSED),
        ("{list_join: ['-', [a, b]]}", "a-b"),
        ("{list_join: [', ', {get_param: zones}, [c], null]}", "az1, az2, c"),
        ("{list_join: ['-', [a, null, {b: 1}]]}", 'a--{"b": 1}'),
        ("{list_join: ['', []]}", ""),
        ("{list_join: ['-', null]}", ""),
        ("{list_join: ['-', '', [a], {}, 0]}", "a"),
        ("{list_join: ['-', [a], {b: 1}]}", REFUSED),
        ("{list_join: [a]}", REFUSED),
        ("{list_join: ['-', text]}", REFUSED),
        ("{list_join: ['-', [1]]}", REFUSED),
        ("{list_join: ['-', [true]]}", REFUSED),
        ("{list_join: [3, [a]]}", REFUSED),
        ("{list_join: text}", REFUSED),
        ("{str_split: [',', 'a,b,c']}", ["a", "b", "c"]),
        ("{str_split: [',', 'a,b,c', 1]}", "b"),
        ("{str_split: [',', 'a,b,c', '-1']}", "c"),
        ("{str_split: [',', 'a,b,c', 1.9]}", "b"),
        ("{str_split: [',', '']}", [""]),
        ("{str_split: ['--', 'a--b-c']}", ["a", "b-c"]),
        ("{str_split: [null, ' a  b ']}", ["a", "b"]),
        ("{str_split: [',', null]}", None),
        ("{str_split: [',', null, 3]}", None),
        ("{str_split: [',', 'a', 0, more]}", "a"),
        ("{str_split: [',', 'a,b,c', 3]}", REFUSED),
        ("{str_split: [',', 'a,b,c', x]}", REFUSED),
        ("{str_split: [',']}", REFUSED),
        ("{str_split: ['', a]}", REFUSED),
        ("{str_split: a}", REFUSED),
        ("{digest: [md5, a]}", "0cc175b9c0f1b6a831c399e269772661"),
        ("{digest: [sha1, é]}", "1599e9fa41ec68c80230491902786bee889f5bcb"),
        (
            "{digest: [sha224, '']}",
            "d14a028c2a3a2bc9476102bb288234c415a2b01f828ea62ac5b3e42f",
        ),
        ("{digest: [crc32, a]}", REFUSED),
        ("{digest: [md5, 3]}", REFUSED),
        ("{digest: [md5]}", REFUSED),
        ("{digest: [md5, ж]}", REFUSED),
        ("{map_merge: [{a: 1, b: 2}, {a: 3}, null]}", {"a": 3, "b": 2}),
        ("{map_merge: []}", {}),
        ("{map_merge: [{a: {x: 1}}, {a: {y: 2}}]}", {"a": {"y": 2}}),
        ("{map_merge: [[a]]}", REFUSED),
        ("{map_merge: {a: b}}", REFUSED),
        (
            "{map_replace: [{a: x, b: y, c: [z]}, {keys: {a: A}, values: {y: Y, x: null}}]}",
            {"A": None, "b": "Y", "c": ["z"]},
        ),
        ("{map_replace: [{a: x}, null]}", {"a": "x"}),
        ("{map_replace: [null, {}]}", {}),
        ("{map_replace: [{a: x}, {keys: {a: a}}]}", {"a": "x"}),
        ("{map_replace: [{a: x}, {keys: {a: null}}]}", {"a": "x"}),
        ("{map_replace: [{a: x, b: y}, {keys: {a: b}}]}", REFUSED),
        ("{map_replace: [{a: x, b: y}, {keys: {a: c, b: c}}]}", REFUSED),
        ("{map_replace: [{a: x}, {key: {}}]}", REFUSED),
        ("{map_replace: [{a: x}]}", REFUSED),
        ("{map_replace: [[a], {}]}", REFUSED),
        ("{filter: [[a, 1], [a, b, 1, 2, a]]}", ["b", 2]),
        ("{filter: [[1], [true, 1.0, '1', 0]]}", ["1", 0]),
        ("{filter: [null, [a]]}", ["a"]),
        ("{filter: ['', [a]]}", ["a"]),
        ("{filter: [[a], null]}", None),
        ("{filter: [[a], []]}", []),
        ("{filter: [a, [a]]}", REFUSED),
        ("{filter: [[a], {a: b}]}", REFUSED),
        ("{filter: [[a]]}", REFUSED),
        ("{list_concat: [[a], [b, a], null]}", ["a", "b", "a"]),
        ("{list_concat: []}", []),
        ("{list_concat: [[a], b]}", REFUSED),
        ("{list_concat: [[a], {b: c}]}", REFUSED),
        ("{list_concat: a}", REFUSED),
        (
            "{list_concat_unique: [[a, 1, {x: 1}], [b, a, true, {x: 1.0}]]}",
            ["a", 1, {"x": 1}, "b"],
        ),
        ("{contains: [a, [a, b]]}", True),
        ("{contains: [1, [a, true]]}", True),
        ("{contains: [{a: 1}, [{a: 1}]]}", True),
        ("{contains: [b, abc]}", True),
        ("{contains: [x, {get_param: zones}]}", False),
        ("{contains: [1, abc]}", REFUSED),
        ("{contains: [a, {a: b}]}", REFUSED),
        ("{contains: [a]}", REFUSED),
        (
            "{repeat: {template: 'n-%i%', for_each: {'%i%': [a, b]}}}",
            ["n-a", "n-b"],
        ),
        (
            (
                "{repeat: {template: {'%k%': ['%k%%v%', 3, null]},"
                " for_each: {'%k%': [a, b], '%v%': [x, y]}}}"
            ),
            [
                {"a": ["ax", 3, None]},
                {"a": ["ay", 3, None]},
                {"b": ["bx", 3, None]},
                {"b": ["by", 3, None]},
            ],
        ),
        (
            (
                "{repeat: {template: '%k%%v%', for_each: {'%k%': [a, b], '%v%': [x, y]},"
                " permutations: false}}"
            ),
            ["ax", "by"],
        ),
        ("{repeat: {template: '%a%', for_each: {'%a%': ['%b%'], '%b%': [x]}}}", ["x"]),
        (
            "{repeat: {template: '%k%', for_each: {'%k%': {get_param: flavors}}}}",
            ["web", "db", "1"],
        ),
        ("{repeat: {template: '%k%', for_each: {'%k%': null}}}", []),
        ("{repeat: {template: '%k%', for_each: {'%k%': [a], '%l%': null}}}", []),
        ("{repeat: {template: 5, for_each: {'%k%': [1, 2]}}}", [5, 5]),
        ("{repeat: {template: x, for_each: {'%k%': [1, 2]}}}", REFUSED),
        ("{repeat: {template: x, for_each: {'%k%': a}}}", REFUSED),
        ("{repeat: {template: x, for_each: {}}}", REFUSED),
        ("{repeat: {template: x, for_each: [a]}}", REFUSED),
        ("{repeat: {template: x}}", REFUSED),
        ("{repeat: {template: x, for_each: {a: [b]}, permutations: 'no'}}", REFUSED),
        (
            "{repeat: {template: x, for_each: {a: [b], c: [d, e]}, permutations: false}}",
            REFUSED,
        ),
        (
            "{repeat: {template: x, for_each: {a: {b: c}}, permutations: false}}",
            REFUSED,
        ),
        (
            "{make_url: {scheme: http, host: example.com, path: a b/c, port: 80}}",
            "http://example.com:80/a%20b/c",
        ),
        (
            "{make_url: {scheme: https, username: u@, password: 'p/', host: '::1', port: '8000'}}",
            "https://u%40:p%2F@[::1]:8000",
        ),
        (
            "{make_url: {host: '[fe80::1]', query: {a: 'b c', d: /e, f: '1&2'}, fragment: 'x y'}}",
            "//[fe80::1]?a=b+c&d=/e&f=1%262#x%20y",
        ),
        ("{make_url: {scheme: http, path: foo}}", "http:///foo"),
        ("{make_url: {scheme: x, path: foo}}", "x:foo"),
        ("{make_url: {path: /foo}}", "/foo"),
        ("{make_url: {username: u, host: h}}", "//u@h"),
        ("{make_url: {}}", ""),
        ("{make_url: {host: h, port: 0}}", REFUSED),
        ("{make_url: {host: h, port: x}}", REFUSED),
        ("{make_url: {host: h, port: 65536}}", REFUSED),
        ("{make_url: {scheme: 'a:', host: h}}", REFUSED),
        ("{make_url: {host: 3}}", REFUSED),
        ("{make_url: {hots: h}}", REFUSED),
        ("{make_url: {query: a}}", REFUSED),
        ("{if: [true, a, b]}", "a"),
        ("{if: [large, a, b]}", "b"),
        ("{if: [{not: large}, a, b]}", "a"),
        ("{if: [null, a, b]}", "a"),
        ("{if: [{get_param: flag}, a, b]}", "a"),
        ("{if: [large, {get_param: nmae}, b]}", "b"),
        ("[{if: [large, a]}, {if: [large, a, b]}, {if: [large, {if: [large, c]}]}]", ["b"]),
        ("{a: {if: [large, a]}, b: [{if: [large, a]}]}", {"b": []}),
        ("{if: [large]}", REFUSED),
        ("{if: [large, a, b, c]}", REFUSED),
        ("{if: [nope, a, b]}", REFUSED),
        ("{if: [3, a, b]}", REFUSED),
        ("{yaql: {expression: '$.data.x + 1', data: {x: 1}}}", 2),
        ("{yaql: {expression: '$.data', data: {get_param: zones}}}", ["az1", "az2"]),
        ("{yaql: {expression: '$.data'}}", {}),
        ("{yaql: {expression: '$.data', data: null}}", None),
        (
            (
                "{yaql: {expression: '$.data.where($ != null).reduce($1 + $2, [])',"
                " data: [[1], null]}}"
            ),
            [1],
        ),
        (
            (
                "{yaql: {expression: 'coalesce($.data, []).flatten().distinct()',"
                " data: [[1, 2], [2]]}}"
            ),
            [1, 2],
        ),
        (
            (
                "{yaql: {expression: '$.data.toDict($.n, $.v)',"
                " data: [{n: a, v: 1}, {n: b, v: [2]}]}}"
            ),
            {"a": 1, "b": [2]},
        ),
        (
            (
                "{yaql: {expression: 'dict($.data.items().select([$[0].replace(a, b), 1]))',"
                " data: {ab: 0}}}"
            ),
            {"bb": 1},
        ),
        ("{yaql: {expression: '$.data.keys().orderBy($)', data: {b: 1, a: 2}}}", ["a", "b"]),
        ('{yaql: {expression: \'$.data.replace("a", "xy", 1)\', data: aa}}', "xya"),
        ("{yaql: {expression: '$.data.replace({a => b, b => c})', data: ab}}", "cc"),
        ("{yaql: {expression: 'round($.data, 1)', data: 2.25}}", 2.2),
        (
            "{yaql: {expression: '$.data.groupBy($ mod 2)', data: [1, 2, 3]}}",
            [[1, [1, 3]], [0, [2]]],
        ),
        ("{yaql: {expression: 'switch($.data = 1 => one, true => other)', data: 2}}", "other"),
        ("{yaql: {expression: 'let(x => $.data) -> $x.len()', data: abc}}", 3),
        ("{yaql: {expression: '$.data.x', data: {}}}", REFUSED),
        ("{yaql: {expression: '$.data['}}", REFUSED),
        ("{yaql: {expression: 'range(1000)'}}", REFUSED),
        ("{yaql: {expression: 3}}", REFUSED),
        ("{yaql: {data: 3}}", REFUSED),
        ("{yaql: {expression: '1', more: 3}}", REFUSED),
        ("{yaql: '1'}", REFUSED),
        ("{Ref: name}", REFUSED),
        ("{'Fn::Select': ['0', [a]]}", REFUSED),
        ("{equals: [a, a]}", {"equals": ["a", "a"]}),
        ("{'Fn::If': [a, b, c]}", {"Fn::If": ["a", "b", "c"]}),
        ("{a: {get_param: name}, b: [1, {get_param: size}]}", {"a": "shop", "b": [1, 3]}),
        ("{repeat_: x}", {"repeat_": "x"}),
        ("{get_param: name, other: x}", {"get_param": "name", "other": "x"}),
    ],
    "2013-05-23": [
        ("{list_join: ['-', [a, null]]}", "a-"),
        ("{list_join: ['-', [a], [b]]}", REFUSED),
        ("{list_join: ['-', [[a]]]}", REFUSED),
        ("{list_join: ['-', null]}", ""),
        ("{list_join: ['-', '']}", REFUSED),
        ("{str_replace: {template: z, params: {z: [a]}}}", REFUSED),
        ("{str_replace: {template: z, params: {z: 1}}}", "1"),
        ("{if: [a, b, c]}", {"if": ["a", "b", "c"]}),
        ("{repeat: {template: x, for_each: {}}}", {"repeat": {"template": "x", "for_each": {}}}),
        ("{Ref: name}", "shop"),
        ("{Ref: nmae}", REFUSED),
        ("{'Fn::Select': [1, [a, b]]}", "b"),
        ("{'Fn::Select': ['1', [a, b]]}", "b"),
        ("{'Fn::Select': ['2', [a, b]]}", ""),
        ("{'Fn::Select': [-1, [a, b]]}", "b"),
        ("{'Fn::Select': [a, [a, b]]}", REFUSED),
        ("{'Fn::Select': [a, {a: 1}]}", 1),
        ("{'Fn::Select': [b, {a: 1}]}", ""),
        ("{'Fn::Select': [1, {a: 1}]}", REFUSED),
        ("{'Fn::Select': [0, '[3, 4]']}", 3),
        ("{'Fn::Select': [a, '{\"a\": 5}']}", 5),
        ("{'Fn::Select': [a, '']}", ""),
        ("{'Fn::Select': [0, null]}", ""),
        ("{'Fn::Select': [0, a]}", REFUSED),
        ("{'Fn::Select': [0, 7]}", REFUSED),
        ("{'Fn::Select': [0]}", REFUSED),
        ("{'Fn::Join': ['-', [a, b]]}", "a-b"),
        ("{'Fn::Split': [',', 'a,b']}", ["a", "b"]),
        ("{'Fn::Split': [',', [a]]}", REFUSED),
        ("{'Fn::Split': 'a,b'}", REFUSED),
        ("{'Fn::Replace': [{a: b, c: 3}, 'a c']}", "b 3"),
        ("{'Fn::Replace': [{a: [b]}, 'a c']}", REFUSED),
        ("{'Fn::Replace': [{a: b}]}", REFUSED),
        ("{'Fn::Base64': {Ref: name}}", "shop"),
        ("{'Fn::Base64': [a]}", REFUSED),
        (
            (
                "{'Fn::MemberListToMap': [Name, Value, ['.member.0.Name=a', '.member.0.Value=b=c',"
                " '.member.7.Name=d', '.member.7.Value=', '.member.x.Name=y', '.member.9.Name=z']]}"
            ),
            {"a": "b=c", "d": ""},
        ),
        ("{'Fn::MemberListToMap': [Name, Value, [a]]}", REFUSED),
        ("{'Fn::MemberListToMap': [Name, Value]}", REFUSED),
    ],
    "2014-10-16": [
        ("{'Fn::Select': [1, [a, b]]}", "b"),
        ("{Ref: name}", REFUSED),
        ("{'Fn::Join': ['-', [a, b]]}", REFUSED),
        ("{repeat: x}", {"repeat": "x"}),
    ],
    "2015-04-30": [
        ("{repeat: {template: '%i%', for_each: {'%i%': [a]}}}", ["a"]),
        ("{repeat: {template: '%i%', for_each: {'%i%': {a: b}}}}", REFUSED),
        ("{digest: [md5, a]}", "0cc175b9c0f1b6a831c399e269772661"),
        ("{str_split: [',', a]}", {"str_split": [",", "a"]}),
    ],
    "2016-10-14": [
        ("{repeat: {template: '%i%', for_each: {'%i%': {a: b}}}}", ["a"]),
        (
            (
                "{repeat: {template: '%i%%j%', for_each: {'%i%': [a], '%j%': [b, c]},"
                " permutations: false}}"
            ),
            ["ab", "ac"],
        ),
        ("{if: [large, a]}", REFUSED),
        ("{filter: [[a], [a]]}", {"filter": [["a"], ["a"]]}),
    ],
}
"""Version -> calls and their values."""

CONDITIONS = """
large: {equals: [{get_param: name}, large]}
small: {not: large}
chosen: {get_param: flag}
odd: {get_param: size}
"""

TRUTHS = [
    ("true", True),
    ("large", False),
    ("small", True),
    ("chosen", True),
    ("odd", REFUSED),
    ("nope", REFUSED),
    ("{equals: [1, true]}", True),
    ("{equals: [1, '1']}", False),
    ("{equals: [{equals: [a, a]}, true]}", True),
    ("{equals: [large, large]}", True),
    ("{equals: [[a, {b: 1}], [a, {b: 1}]]}", True),
    ("{equals: [a]}", REFUSED),
    ("{equals: [{list_join: ['', [a]]}, a]}", REFUSED),
    ("{equals: [{if: [true, a, b]}, a]}", REFUSED),
    ("{not: {not: small}}", True),
    ("{not: {get_param: flag}}", False),
    ("{not: null}", REFUSED),
    ("{not: nope}", REFUSED),
    ("{and: [true, small, {get_param: flag}]}", True),
    ("{and: [large, nope]}", False),
    ("{and: [small, nope]}", REFUSED),
    ("{and: [small]}", REFUSED),
    ("{and: small}", REFUSED),
    ("{or: [large, {equals: [a, a]}]}", True),
    ("{or: [small, nope]}", True),
    ("{or: [large, large]}", False),
    ("{contains: [az1, {get_param: zones}]}", True),
    ("{get_param: flag}", True),
    ("{get_param: size}", REFUSED),
    ("{get_param: name}", REFUSED),
    ("{yaql: {expression: '$.data = 1', data: 1}}", True),
    ("{yaql: {expression: '$.data', data: 1}}", REFUSED),
]
"""Conditions, as `condition` of a resource in version wallaby, and whether they hold."""
