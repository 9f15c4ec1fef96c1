#!/usr/bin/python3
"""undocumented.py XML: finds symbols without a comment. Prints FILE:LINE: KIND NAME for each type,
field, function, macro and enumerator in Doxygen's XML (with EXTRACT_ALL) that has no comment.
Prints on stderr how many have one. Exit status: 1 if any has none, otherwise 0."""
import glob
import os
import sys
import xml.etree.ElementTree as ElementTree


def has_text(element):
    return any("".join(element.find(part).itertext()).strip() for part in ("briefdescription", "detaileddescription") if element.find(part) is not None)


def place_of(element, default=""):
    location = element.find("location")
    return default if location is None else f"{location.get('declfile') or location.get('file')}:{location.get('declline') or location.get('line')}"


def symbols(compound):
    """The symbols of a file, a struct or a union: place, kind, name, has a comment?"""
    kind = compound.get("kind")
    if kind in ("struct", "union", "class"):
        yield place_of(compound), kind, compound.findtext("compoundname"), has_text(compound)
    for member in compound.iter("memberdef"):
        name = member.findtext("name")
        if name.strip() and not name.startswith("@"):
            yield place_of(member), member.get("kind"), name, has_text(member)
        for value in member.findall("enumvalue"):
            yield place_of(member), "enumerator", value.findtext("name"), has_text(value)


def main():
    found = {}
    for path in glob.glob(os.path.join(sys.argv[1], "*.xml")):
        for compound in ElementTree.parse(path).getroot().findall("compounddef"):
            if compound.get("kind") in ("struct", "union", "class", "file"):
                for place, kind, name, good in symbols(compound):
                    found[place, kind, name] = found.get((place, kind, name)) or good
    bare = sorted((place, kind, name) for (place, kind, name), good in found.items() if not good and name)
    for place, kind, name in bare:
        print(f"{os.path.relpath(place)}: {kind} {name}")
    print(len(found) - len(bare), file=sys.stderr)
    return 1 if bare else 0


if __name__ == "__main__":
    sys.exit(main())
