"""What a script compiled ahead of time cannot do, and how that ends."""

import sys


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


class Deep:
    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return "D%r" % self.inner


# Written out, because a name in an import statement is what gets a module compiled in.
LOADERS = []


def loader(f):
    LOADERS.append(f)
    return f


@loader
def asyncio():
    import asyncio


@loader
def bz2():
    import bz2


@loader
def calendar():
    import calendar


@loader
def concurrent_futures():
    import concurrent.futures


@loader
def ctypes():
    import ctypes


@loader
def curses():
    import curses


@loader
def dbm():
    import dbm


@loader
def email_message():
    import email.message


@loader
def gzip():
    import gzip


@loader
def html_parser():
    import html.parser


@loader
def http_client():
    import http.client


@loader
def ipaddress():
    import ipaddress


@loader
def logging():
    import logging


@loader
def lzma():
    import lzma


@loader
def multiprocessing():
    import multiprocessing


@loader
def pathlib():
    import pathlib


@loader
def secrets():
    import secrets


@loader
def shutil():
    import shutil


@loader
def socket():
    import socket


@loader
def sqlite3():
    import sqlite3


@loader
def ssl():
    import ssl


@loader
def subprocess():
    import subprocess


@loader
def sysconfig():
    import sysconfig


@loader
def tarfile():
    import tarfile


@loader
def tempfile():
    import tempfile


@loader
def threading():
    import threading


@loader
def tomllib():
    import tomllib


@loader
def unittest():
    import unittest


@loader
def urllib_request():
    import urllib.request


@loader
def uuid():
    import uuid


@loader
def xml_etree_ElementTree():
    import xml.etree.ElementTree


@loader
def zipfile():
    import zipfile


@loader
def zlib():
    import zlib


@loader
def zoneinfo():
    import zoneinfo


def main():
    what, *rest = sys.argv[1:]
    if what == "recurse":
        print(depth(int(rest[0])))
    elif what == "catch":
        try:
            print(depth(10**6))
        except RecursionError as e:
            print("RecursionError", e)
    elif what == "repr":
        d = None
        for _ in range(int(rest[0])):
            d = Deep(d)
        try:
            print(len(repr(d)))
        except RecursionError as e:
            print("RecursionError", e)
    elif what == "nested":
        import json

        try:
            print(len(json.loads("[" * int(rest[0]) + "]" * int(rest[0]))))
        except RecursionError as e:
            print("RecursionError", e)
    elif what == "import":
        for load in LOADERS:
            if load.__name__ in rest:
                load()
                print(load.__name__, "yes")
    elif what == "platform":
        import os
        import platform

        print(sys.platform, sys.maxsize, os.name, sys.version.split()[0], platform.system(), sys.executable, sys.argv[0], __name__)
        print(sorted(os.environ), os.getcwd())
    elif what == "accelerators":
        import json.decoder, json.scanner, json.encoder, bisect, heapq, datetime, decimal, statistics, random, struct

        print(json.scanner.c_make_scanner, json.encoder.c_make_encoder, bisect.bisect, heapq.heappush, datetime.date, decimal.Decimal)
        for name in sys.builtin_module_names:
            print(name, end=" ")
        print()
    elif what == "exit":
        sys.exit(int(rest[0]))
    elif what == "fail":
        raise ValueError("uncaught")
    elif what == "endless":
        while True:
            pass
    elif what == "memory":
        print(len("x" * int(rest[0])))


main()
